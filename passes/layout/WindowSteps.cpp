#include "passes/layout/WindowSteps.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace mlir;

static bool isCut(AffineExpr expr) {
  return expr.getKind() == AffineExprKind::FloorDiv || expr.getKind() == AffineExprKind::Mod;
}

/// Returns the steps along K by which a quotient of quotients grows by one; 1 for K itself.
static int64_t stepsOf(AffineExpr expr) {
  if (expr.getKind() != AffineExprKind::FloorDiv)
    return 1;
  auto quotient = cast<AffineBinaryOpExpr>(expr);
  auto size = dyn_cast<AffineConstantExpr>(quotient.getRHS());
  return size ? size.getValue() * stepsOf(quotient.getLHS()) : 1;
}

/// Returns the steps along K after which each quotient grows and each remainder begins anew.
static SmallVector<int64_t> runsOf(AffineMap map, int64_t k) {
  SmallVector<int64_t> runs;
  map.walkExprs([&](AffineExpr expr) {
    if (!isCut(expr))
      return;
    auto cut = cast<AffineBinaryOpExpr>(expr);
    if (auto run = dyn_cast<AffineConstantExpr>(cut.getRHS()); run && cut.getLHS().isFunctionOfDim(k))
      runs.push_back(run.getValue() * stepsOf(cut.getLHS()));
  });
  return runs;
}

bool tilewright::hasWindows(AffineMap map, int64_t k) { return !runsOf(map, k).empty(); }

int64_t tilewright::windowRun(AffineMap map, int64_t k) {
  int64_t common = 0;
  for (int64_t run : runsOf(map, k))
    common = std::gcd(common, run);
  return std::max<int64_t>(common, 1);
}

int64_t tilewright::windowSteps(AffineMap map, int64_t k, int64_t length, int64_t tile, const CpuCosts &costs) {
  SmallVector<int64_t> runs = runsOf(map, k);
  int64_t best = 1, common = std::gcd(length, tile);
  for (int64_t run : runs)
    if (run > best && run <= costs.windowSteps && common % run == 0 &&
        llvm::all_of(runs, [&](int64_t other) { return other % run == 0 || run % other == 0; }))
      best = run;
  if (best > 1 || runs.empty())
    return best;
  for (int64_t run : runs)
    common = std::gcd(common, run);
  for (int64_t steps = costs.windowRun; steps > 1; --steps)
    if (common % steps == 0)
      return steps;
  return 1;
}
