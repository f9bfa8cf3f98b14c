// Emits the loops of a nest over its points: loops over a whole tile, over a tile that may be the smaller last one of
// the grid, and over one thread's share of a tile.
#include "passes/codegen/common/NestBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

SmallVector<Value> NestBuilder::emitLoop(unsigned level, const IRMapping &values, Value mask, ValueRange carried,
                                         LoopBody body) {
  int64_t dim = nest.order[level], size = compute.getSizes()[dim], extent = compute.getExtents()[dim];
  Value low = offsets[dim];
  bool partial = extent % size != 0;
  if (threads)
    return emitShare(level, values, carried, body);
  if (dim == vectorDim)
    return partial ? emitWholeOrLastTile(values, mask, carried, body) : emitWholeTile(values, mask, carried, body);
  if (size == 1)
    return emitPoint(dim, low, values, mask, carried, body);
  if (!partial && level >= nest.numParallel && size <= shape.unrolledPoints)
    return emitUnrolled(dim, values, mask, carried, body);
  Value high = partial ? clampedEnd(low, size, extent) : add(low, size);
  return emitFor(dim, low, high, 1, values, mask, carried, body);
}

SmallVector<Value> NestBuilder::emitWholeTile(const IRMapping &values, Value mask, ValueRange carried, LoopBody body) {
  int64_t size = compute.getSizes()[vectorDim], whole = size / lanes * lanes;
  Value low = offsets[vectorDim];
  SmallVector<Value> now(carried);
  if (whole == lanes)
    now = emitPoint(vectorDim, low, values, mask, now, body);
  else if (whole > 0)
    now = emitFor(vectorDim, low, add(low, whole), lanes, values, mask, now, body);
  if (whole < size)
    now = emitTail(add(low, whole), size - whole, values, now, body);
  return now;
}

SmallVector<Value> NestBuilder::emitWholeOrLastTile(const IRMapping &values, Value mask, ValueRange carried,
                                                    LoopBody body) {
  int64_t size = compute.getSizes()[vectorDim], extent = compute.getExtents()[vectorDim], last = extent % size;
  Value low = offsets[vectorDim], end = add(low, size);
  Value isWhole = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sle, end, constantIndex(extent));
  int64_t tail = size % lanes, lastTail = last % lanes;
  Value vectors =
      arith::SelectOp::create(builder, loc, isWhole, constantIndex(size - tail), constantIndex(last - lastTail));
  Value rest = addValues(low, vectors);
  SmallVector<Value> now = emitFor(vectorDim, low, rest, lanes, values, mask, carried, body);
  if (tail == 0 && lastTail == 0)
    return now;
  auto branch = scf::IfOp::create(builder, loc, ValueRange(now).getTypes(), isWhole, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  auto emitRest = [&](Block *block, int64_t points) {
    builder.setInsertionPointToStart(block);
    SmallVector<Value> ends = points > 0 ? emitTail(rest, points, values, now, body) : now;
    if (!now.empty())
      scf::YieldOp::create(builder, loc, ends);
  };
  emitRest(branch.thenBlock(), tail);
  emitRest(branch.elseBlock(), lastTail);
  return SmallVector<Value>(branch.getResults());
}

SmallVector<Value> NestBuilder::emitTail(Value first, int64_t points, const IRMapping &values, ValueRange carried,
                                         LoopBody body) {
  int64_t all = lanes;
  if (!beside && nest.running < 0) {
    lanes = std::min(all, lanesFor(points, shape.bytes));
    // LLVM computes a mask bit by bit if the number of its lanes is no power of two.
    if (readsUnderGuards())
      lanes = std::min<int64_t>(all, llvm::PowerOf2Ceil(lanes));
  }
  Value mask = points == lanes ? Value() : tailMask(constantIndex(points));
  SmallVector<Value> now;
  for (auto [i, value] : llvm::enumerate(carried))
    now.push_back(firstLanes(value, carriedLanes(i)));
  now = emitPoint(vectorDim, first, values, mask, now, body);
  lanes = all;
  for (auto [value, whole] : llvm::zip(now, carried))
    if (value.getType() != whole.getType())
      value = vector::InsertStridedSliceOp::create(builder, loc, value, whole, 0, 1);
  return now;
}

bool NestBuilder::readsUnderGuards() {
  return llvm::any_of(compute.getBody().getOps<LoadOp>(),
                      [&](LoadOp load) { return load.getGuard() && load.getMap().isFunctionOfDim(vectorDim); });
}

SmallVector<Value> NestBuilder::emitShare(unsigned level, const IRMapping &values, ValueRange carried, LoopBody body) {
  int64_t dim = nest.order[level], size = compute.getSizes()[dim], extent = compute.getExtents()[dim];
  int64_t count = threads->threadsAlong(dim), width = dim == vectorDim ? lanes : 1, step = count * width;
  Value low = offsets[dim];
  bool partial = extent % size != 0;
  Value first = low;
  if (count > 1) {
    Value own = threads->indexAlong(builder, dim);
    if (width > 1)
      own = arith::MulIOp::create(builder, loc, own, constantIndex(width));
    first = addValues(low, own);
  }
  auto at = [&](Value turn) {
    return addValues(first, arith::MulIOp::create(builder, loc, turn, constantIndex(step)));
  };
  if (!partial && size % step == 0) {
    if (size == step)
      return emitPoint(dim, first, values, Value(), carried, body);
    return emitCounted(size / step, carried, [&](Value turn, ValueRange now) {
      return emitPoint(dim, at(turn), values, Value(), now, body);
    });
  }
  Value high = partial ? clampedEnd(low, size, extent) : add(low, size);
  if (level >= nest.numParallel || !threads->combines() || count == 1)
    return emitFor(dim, first, high, step, values, Value(), carried, body);
  // All threads execute the same number of iterations, because they synchronise inside the loop. Past the end, a thread
  // repeats the first point and stores nothing.
  return emitCounted(llvm::divideCeil(size, step), carried, [&](Value turn, ValueRange now) {
    Value index = at(turn), outside = stores;
    Value valid = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, index, high);
    stores = outside ? arith::AndIOp::create(builder, loc, outside, valid) : valid;
    index = arith::SelectOp::create(builder, loc, valid, index, low);
    SmallVector<Value> next = emitPoint(dim, index, values, Value(), now, body);
    stores = outside;
    return next;
  });
}

SmallVector<Value> NestBuilder::emitCounted(int64_t count, ValueRange carried, IndexBody body) {
  if (count == 1)
    return body(constantIndex(0), carried);
  return emitForOp(constantIndex(0), constantIndex(count), constantIndex(1), carried, body);
}

SmallVector<Value> NestBuilder::emitPoint(int64_t dim, Value index, const IRMapping &values, Value mask,
                                          ValueRange carried, LoopBody body) {
  indices[dim] = index;
  IRMapping inner = values;
  return body(inner, mask, carried);
}

SmallVector<Value> NestBuilder::emitUnrolled(int64_t dim, const IRMapping &values, Value mask, ValueRange carried,
                                             LoopBody body) {
  SmallVector<Value> now(carried);
  Value low = offsets[dim];
  for (int64_t point = 0; point < compute.getSizes()[dim]; ++point)
    now = emitPoint(dim, add(low, point), values, mask, now, body);
  return now;
}

SmallVector<Value> NestBuilder::emitFor(int64_t dim, Value low, Value high, int64_t step, const IRMapping &values,
                                        Value mask, ValueRange carried, LoopBody body) {
  return emitForOp(low, high, constantIndex(step), carried,
                   [&](Value index, ValueRange now) { return emitPoint(dim, index, values, mask, now, body); });
}

SmallVector<Value> NestBuilder::emitForOp(Value low, Value high, Value step, ValueRange carried, IndexBody body) {
  auto loop = scf::ForOp::create(builder, loc, low, high, step, carried);
  OpBuilder::InsertionGuard guard(builder);
  if (carried.empty())
    builder.setInsertionPoint(loop.getBody()->getTerminator());
  else
    builder.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!carried.empty())
    scf::YieldOp::create(builder, loc, next);
  return SmallVector<Value>(loop.getResults());
}
