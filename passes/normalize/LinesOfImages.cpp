// Decides by the lengths of lines whether they stay a dim. A line that does costs time at its end, where a register
// block is partly empty, and a tile of few lines reads the weights again.
#include "passes/normalize/LinesOfImages.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tilewright;

/// Points of a line of an image that leave few rows of the last register block empty; longer lines stay apart.
static constexpr int64_t kLongLine = 24;
/// The same where K goes over windows of a channel, and the points of such windows. All lines of a tile then read the
/// weights once, and register blocks go from one line into the next. On a Zen 3 with AVX2 and one thread (2026-11-29),
/// 3x3 and 5x5 convolutions of 28 to 112 points take 0.74 to 0.92 of the time; those of 224 points would take 1.10, 7x7
/// ones 1.07. A stem of three channels is an exception: 3x3 with stride 2 and 112 points takes 1.07.
static constexpr int64_t kLongLineOfWindows = 128, kFewestPoints = 9, kMostPoints = 25;

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
static bool goesOverWindows(linalg::LinalgOp convolution, unsigned innermost) {
  int64_t points = pointsOfWindow(convolution);
  return !llvm::is_contained(linalg::inferConvolutionDims(convolution)->inputChannel, innermost) &&
         points >= kFewestPoints && points <= kMostPoints;
}

bool tilewright::keepsLines(linalg::LinalgOp convolution, unsigned line, unsigned innermost) {
  int64_t points = convolution.getStaticLoopRanges()[line];
  bool collapsesLong = goesOverWindows(convolution, innermost) && !feedsPointwise(convolution->getResult(0));
  return points >= (collapsesLong ? kLongLineOfWindows : kLongLine);
}
