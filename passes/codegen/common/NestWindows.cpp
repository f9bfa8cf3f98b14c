// Reduces several windows at once, such as those of a depthwise convolution or a pool. Neighbouring windows overlap, and
// all windows read the same weights, so that LLVM loads what they share once. Each sum has the order that it has alone.
#include "passes/codegen/common/NestBuilder.h"

#include "passes/support/Strides.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

void NestBuilder::emitWindows(IRMapping &values, Value mask) {
  unsigned level = nest.numParallel - 1;
  emitOps(level, values, mask);
  int64_t dim = nest.order[level], size = compute.getSizes()[dim], whole = size / nest.together * nest.together;
  Value low = offsets[dim];
  if (whole == nest.together)
    reduceTogether(low, whole, values, mask);
  else
    emitForOp(low, add(low, whole), constantIndex(nest.together), {}, [&](Value first, ValueRange) {
      reduceTogether(first, nest.together, values, mask);
      return SmallVector<Value>();
    });
  if (whole < size)
    reduceTogether(add(low, whole), size - whole, values, mask);
}

void NestBuilder::reduceTogether(Value first, int64_t count, const IRMapping &values, Value mask) {
  indices[nest.order[nest.numParallel - 1]] = first;
  Value inside = areWindowsInside(count);
  if (!inside)
    return reduceWindows(first, count, values, mask);
  auto branch = scf::IfOp::create(builder, loc, inside, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard back(builder);
  for (bool hold : {true, false}) {
    builder.setInsertionPoint(hold ? branch.thenBlock()->getTerminator() : branch.elseBlock()->getTerminator());
    guardsHold = hold;
    reduceWindows(first, count, values, mask);
  }
}

Value NestBuilder::areWindowsInside(int64_t count) {
  SmallVector<AffineExpr> constraints;
  for (Operation &op : compute.getBodyBlock().without_terminator()) {
    auto load = dyn_cast<LoadOp>(op);
    auto within = dyn_cast<WithinOp>(op);
    std::optional<IntegerSet> set = load ? load.getGuard() : within ? std::optional(within.getSet()) : std::nullopt;
    if (!set)
      continue;
    std::optional<int64_t> loaded = load ? loadedPerLane(load) : 1;
    if (set->getNumEqualities() > 0 || !loaded)
      return {};
    llvm::append_range(constraints, set->getConstraints());
    if (*loaded > 1)
      constraints.push_back(load.getSlice().getType().getShape().back() - *loaded - load.getMap().getResults().back());
  }
  for (int64_t dim : compute.getReductions())
    indices[dim] = offsets[dim];
  Value all;
  for (AffineExpr constraint : constraints) {
    std::optional<AffineExpr> least = leastOfWindows(constraint, count);
    if (!least)
      return {};
    Value holds =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, scalarIndex(*least), constantIndex(0));
    all = all ? arith::AndIOp::create(builder, loc, all, holds).getResult() : holds;
  }
  return all;
}

std::optional<AffineExpr> NestBuilder::leastOfWindows(AffineExpr expr, int64_t count) {
  unsigned rank = indices.size();
  auto lower = [&](int64_t dim, int64_t points) {
    std::optional<int64_t> slope = strideAlong(AffineMap::get(rank, rank, expr), /*strides=*/{1}, dim);
    if (slope && *slope < 0)
      expr = expr.replace(builder.getAffineDimExpr(dim), builder.getAffineDimExpr(dim) + (points - 1));
    return slope.has_value();
  };
  bool isLinear = lower(nest.order[nest.numParallel - 1], count) && lower(vectorDim, lanes);
  for (int64_t dim : compute.getReductions())
    isLinear = isLinear && lower(dim, compute.getSizes()[dim]);
  return isLinear ? std::optional(expr) : std::nullopt;
}

void NestBuilder::reduceWindows(Value first, int64_t count, const IRMapping &values, Value mask) {
  int64_t dim = nest.order[nest.numParallel - 1], last = compute.getExtents()[dim] - count;
  SmallVector<Interval> before = ranges;
  SmallVector<Window> windows;
  for (int64_t number = 0; number < count; ++number) {
    Interval range{number, last + number}; // tiles are whole, so all windows are in the image
    Window &window = windows.emplace_back(Window{add(first, number), range, values, startValues()});
    enterWindow(window);
    emitOps(nest.numParallel, window.values, mask);
  }
  reducePoints(nest.numParallel, windows, mask);
  for (Window &window : windows) {
    enterWindow(window);
    storeReductions(window.carried, /*correction=*/{}, mask);
  }
  ranges = before;
}

void NestBuilder::enterWindow(const Window &window) {
  int64_t dim = nest.order[nest.numParallel - 1];
  indices[dim] = window.index;
  ranges[dim] = window.range;
}

void NestBuilder::reducePoints(unsigned level, MutableArrayRef<Window> windows, Value mask) {
  int64_t reduced = nest.order[level];
  bool isLast = level + 1 == nest.order.size(), isSeparate = isLast && level > nest.numParallel;
  SmallVector<SmallVector<Value>> outerSums;
  for (Window &window : windows) {
    outerSums.push_back(window.carried);
    if (isSeparate)
      for (unsigned i : floatAccumulators())
        window.carried[i] = toVectorLike(neutral(i), window.carried[i]);
  }
  for (int64_t point = 0; point < compute.getSizes()[reduced]; ++point) {
    indices[reduced] = add(offsets[reduced], point);
    ranges[reduced] = {point, point};
    SmallVector<Window> now(windows.begin(), windows.end()); // whose values end with the point
    for (Window &window : now) {
      enterWindow(window);
      if (isLast)
        mapAccumulators(window.values, window.carried);
      emitOps(level + 1, window.values, mask);
      if (isLast)
        window.carried = nextValues(window.values, mask, window.carried);
    }
    if (!isLast)
      reducePoints(level + 1, now, mask);
    for (auto [window, after] : llvm::zip(windows, now))
      window.carried = after.carried;
  }
  if (isSeparate)
    for (auto [window, sums] : llvm::zip(windows, outerSums))
      for (unsigned i : floatAccumulators())
        window.carried[i] = arith::AddFOp::create(builder, loc, sums[i], window.carried[i]);
}
