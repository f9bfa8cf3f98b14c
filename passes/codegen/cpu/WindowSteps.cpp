#include "passes/codegen/cpu/WindowSteps.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace mlir;

/// Most steps whose code follows each other: about 600 instructions with the largest register block.
static constexpr int64_t kMostSteps = 16;
/// Most steps that are a part of a longer run, such as the channels of an image that has them innermost.
static constexpr int64_t kMostOfRun = 8;

static bool isCut(AffineExpr expr) {
  return expr.getKind() == AffineExprKind::FloorDiv || expr.getKind() == AffineExprKind::Mod;
}

int64_t tilewright::windowSteps(AffineMap map, int64_t k, int64_t length, int64_t tile) {
  SmallVector<int64_t> runs;
  map.walkExprs([&](AffineExpr expr) {
    if (!isCut(expr))
      return;
    auto cut = cast<AffineBinaryOpExpr>(expr);
    if (auto run = dyn_cast<AffineConstantExpr>(cut.getRHS()); run && cut.getLHS().isFunctionOfDim(k))
      runs.push_back(run.getValue());
  });
  int64_t best = 1, common = std::gcd(length, tile);
  for (int64_t run : runs)
    if (run > best && run <= kMostSteps && common % run == 0 &&
        llvm::all_of(runs, [&](int64_t other) { return other % run == 0 || run % other == 0; }))
      best = run;
  if (best > 1 || runs.empty())
    return best;
  for (int64_t run : runs)
    common = std::gcd(common, run);
  for (int64_t steps = kMostOfRun; steps > 1; --steps)
    if (common % steps == 0)
      return steps;
  return 1;
}
