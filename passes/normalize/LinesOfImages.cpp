// Decides by the lengths of lines whether they stay a dim. A line that does costs time at its end, where a register
// block is partly empty, and a tile of few lines reads the weights again. If all lines are one dim, register blocks go
// from one line into the next. A stem of three channels is an exception to the measured lengths: 3x3 with stride 2 and
// 112 points takes 1.07 of the time (Zen 3, 2026-11-29).
#include "passes/normalize/LinesOfImages.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tilewright;

/// Returns the points of the windows of a convolution that sums over channels, or 0 for another op, such as a pool.
static int64_t pointsOfWindow(linalg::LinalgOp op) {
  FailureOr<linalg::ConvolutionDimensions> dims = linalg::inferConvolutionDims(op);
  if (failed(dims) || dims->inputChannel.empty() || dims->outputChannel.empty())
    return 0;
  int64_t points = 1;
  for (unsigned loop : dims->filterLoop)
    points *= op.getStaticLoopRanges()[loop];
  return points;
}

/// Returns true if a convolution of single points reads the tensor as its image, through elementwise ops alone. It can
/// take over tiles of lines.
static bool feedsPointwise(Value tensor) {
  llvm::SetVector<Value> reached;
  reached.insert(tensor);
  for (size_t next = 0; next < reached.size(); ++next)
    for (OpOperand &use : reached[next].getUses()) {
      auto op = dyn_cast<linalg::LinalgOp>(use.getOwner());
      if (!op || op->getNumResults() != 1)
        continue;
      if (linalg::isaConvolutionOpInterface(op)) {
        if (use.getOperandNumber() == 0 && pointsOfWindow(op) == 1)
          return true;
      } else if (op.getNumLoops() == op.getNumParallelLoops()) {
        reached.insert(op->getResult(0));
      }
    }
  return false;
}

/// Returns true if K goes over the points of a window before it goes on to the next channel.
static bool goesOverWindows(linalg::LinalgOp convolution, unsigned innermost, const CpuCosts &costs) {
  int64_t points = pointsOfWindow(convolution);
  return !llvm::is_contained(linalg::inferConvolutionDims(convolution)->inputChannel, innermost) &&
         points >= costs.fewestWindowPoints && points <= costs.mostWindowPoints;
}

bool tilewright::keepsLines(linalg::LinalgOp convolution, unsigned line, unsigned innermost, const CpuCosts &costs) {
  int64_t points = convolution.getStaticLoopRanges()[line];
  bool collapsesLong = goesOverWindows(convolution, innermost, costs) && !feedsPointwise(convolution->getResult(0));
  return points >= (collapsesLong ? costs.longLineOfWindows : costs.longLine);
}
