// Emits the guards of a nest: tests of whether a point lies in a set, for one point or for each lane.
#include "passes/codegen/common/NestMemory.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

/// Vectors of threads begin at multiples of their lanes, so a constraint may be the same for all lanes of a vector.
bool NestMemory::differsByLane(IntegerSet set, AffineExpr constraint) {
  return vectorDim >= 0 && constraint.isFunctionOfDim(vectorDim) && !(threads && holdsByRuns(set, vectorDim, lanes));
}

std::optional<Interval> NestMemory::rangeOf(AffineExpr expr) {
  bool hasSymbols = false;
  expr.walk([&](AffineExpr part) { hasSymbols |= isa<AffineSymbolExpr>(part); });
  return hasSymbols ? std::nullopt : std::optional(boundExpr(expr, ranges));
}

bool NestMemory::isSmall(AffineExpr expr) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 2; // leaves room for lanes past the end of a row
  bool fits = !threads;
  expr.walk([&](AffineExpr part) {
    std::optional<Interval> range = rangeOf(part);
    fits = fits && range && std::max(-range->low, range->high) < kMost;
  });
  return fits;
}

Value NestMemory::emitWithin(IntegerSet set, bool onLanes) {
  Value all;
  ArrayRef<AffineExpr> tested = guardsHold ? ArrayRef<AffineExpr>() : set.getConstraints();
  for (auto [expr, equality] : llvm::zip(tested, set.getEqFlags())) {
    if (std::optional<Interval> range = rangeOf(expr); !equality && range && range->low >= 0)
      continue;
    bool lane = onLanes && differsByLane(set, expr);
    Type type = lane && isSmall(expr) ? Type(builder.getI32Type()) : builder.getIndexType();
    Value value = lane ? vectorIndex(expr, type) : scalarIndex(expr);
    Value zero = constant(builder.getIntegerAttr(type, 0));
    auto predicate = equality ? arith::CmpIPredicate::eq : arith::CmpIPredicate::sge;
    Value holds = arith::CmpIOp::create(builder, loc, predicate, value, lane ? toVector(zero) : zero);
    if (!all)
      all = holds;
    else if (isa<VectorType>(all.getType()) || isa<VectorType>(holds.getType()))
      all = arith::AndIOp::create(builder, loc, toVector(all), toVector(holds));
    else
      all = arith::AndIOp::create(builder, loc, all, holds);
  }
  if (!all)
    all = constant(builder.getBoolAttr(true));
  return onLanes ? toVector(all) : all;
}
