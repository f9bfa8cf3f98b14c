// Emits nests that use a maximum while they accumulate it (online softmax). NestBuilder.h has the scheme.
#include "passes/codegen/common/NestBuilder.h"

#include "dialects/tile/TileAttributeNames.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

/// Distance by which the maximum may exceed the reference before the reference moves. exp(8) is about 3000, which
/// leaves room to accumulate even in f16.
static constexpr double kLag = 8;

Value NestBuilder::yielded(unsigned i) { return compute.getBodyBlock().getTerminator()->getOperand(i); }

bool NestBuilder::isRelative(unsigned i) { return nest.relative.contains(yielded(i).getDefiningOp()); }

SmallVector<unsigned> NestBuilder::relativeSums() {
  return llvm::filter_to_vector(llvm::seq<unsigned>(compute.getAccs().size()),
                                [&](unsigned i) { return isRelative(i); });
}

std::pair<SmallVector<Value>, Value> NestBuilder::emitRunning(IRMapping &values, ValueRange carried) {
  int64_t block = compute.getRunning()->getBlock(), size = compute.getSizes()[vectorDim];
  int64_t whole = size / block * block;
  Type type = elementOf(nest.running);
  const llvm::fltSemantics &semantics = cast<FloatType>(type).getFloatSemantics();
  SmallVector<Value> now(carried);
  now.push_back(toVector(constant(FloatAttr::get(type, APFloat::getLargest(semantics, /*Negative=*/true)))));
  Value low = offsets[vectorDim];
  if (whole > 0)
    now = emitFor(vectorDim, low, add(low, whole), block, values, Value(), now,
                  [&](IRMapping &inner, Value, ValueRange before) { return emitBlock(inner, block, before); });
  if (whole < size) {
    indices[vectorDim] = add(low, whole);
    now = emitBlock(values, size - whole, now);
  }
  Value reference = vector::ExtractOp::create(builder, loc, now.pop_back_val(), 0);
  return {now, factorBetween(reference, reduceLanes(nest.running, now[nest.running]))};
}

Value NestBuilder::factorBetween(Value from, Value to) {
  Value difference = arith::SubFOp::create(builder, loc, from, to);
  Value factor = math::ExpOp::create(builder, loc, difference);
  Value same = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, from, to);
  Value one = constant(builder.getFloatAttr(getElementTypeOrSelf(from.getType()), 1.0));
  return arith::SelectOp::create(builder, loc, same, toVectorLike(one, from), factor);
}

SmallVector<Value> NestBuilder::emitBlock(const IRMapping &values, int64_t points, ValueRange before) {
  SmallVector<Value> now(before);
  SmallVector<Vector> vectors;
  Value start = indices[vectorDim];
  for (int64_t point = 0; point < points; point += lanes) {
    Value mask = points - point < lanes ? tailMask(constantIndex(points - point)) : Value();
    vectors.push_back({point == 0 ? start : add(start, point), mask, values});
    emitIndependent(vectors.back(), now);
  }
  flagNaNs(vectors, now);
  now[nest.running] = largestOf(vectors, now[nest.running]);
  moveReference(now);
  storeReference(start, now.back());
  // Emit the other nest before the stores of this one: LLVM cannot tell that they do not alias the other nest's loads.
  if (beside)
    for (Vector &vector : vectors) {
      indices[vectorDim] = vector.index;
      emitBeside(nest.order.size(), vector.values, vector.mask);
    }
  // Sum each block separately and then add the block's sum. The rounding error then grows with the number of blocks
  // instead of the number of elements, and a block does not wait for the one before it.
  SmallVector<Value> blockSums(now);
  for (unsigned i : relativeSums())
    blockSums[i] = toVector(neutral(i));
  for (Vector &vector : vectors)
    emitRelative(vector, blockSums);
  for (unsigned i : relativeSums())
    now[i] = arith::AddFOp::create(builder, loc, now[i], blockSums[i]);
  return now;
}

void NestBuilder::emitIndependent(Vector &vector, SmallVector<Value> &now) {
  indices[vectorDim] = vector.index;
  mapAccumulators(vector.values, ArrayRef(now).drop_back());
  prefetchNextOutputs();
  Operation *maximum = yielded(nest.running).getDefiningOp();
  for (Operation &op : compute.getBodyBlock().without_terminator())
    if (nest.levels.lookup(&op) == nest.order.size() && !nest.relative.contains(&op) && &op != maximum)
      emitOp(op, vector.values, vector.mask);
  for (unsigned i = 0; i < compute.getAccs().size(); ++i)
    if (static_cast<int64_t>(i) != nest.running && !isRelative(i))
      now[i] = keepPastEnd(vector.mask, vector.values.lookupOrDefault(yielded(i)), now[i]);
}

void NestBuilder::emitRelative(Vector &vector, SmallVector<Value> &now) {
  indices[vectorDim] = vector.index;
  vector.values.map(yielded(nest.running), now.back());
  mapAccumulators(vector.values, ArrayRef(now).drop_back());
  for (Operation *op : nest.relative)
    if (auto store = dyn_cast<StoreOp>(op); !store || store.getValue() != yielded(nest.running))
      emitRelativeOp(*op, vector);
  for (unsigned i : relativeSums())
    now[i] = keepPastEnd(vector.mask, vector.values.lookup(yielded(i)), now[i]);
}

void NestBuilder::emitRelativeOp(Operation &op, Vector &vector) {
  emitOp(op, vector.values, vector.mask);
  // No value exceeds the reference by more than kLag, so the argument of the exponential is small.
  if (auto exp = dyn_cast<math::ExpOp>(op); exp && exp.getOperand().getDefiningOp<arith::SubFOp>())
    vector.values.lookup(exp.getResult()).getDefiningOp()->setAttr(kSmallArgumentAttr, builder.getUnitAttr());
}

Value NestBuilder::keepPastEnd(Value mask, Value value, Value before) {
  value = toVector(value);
  return mask ? arith::SelectOp::create(builder, loc, mask, value, before).getResult() : value;
}

Value NestBuilder::valueOf(const Extremum &extremum, const Vector &vector) {
  return keepPastEnd(vector.mask, vector.values.lookupOrDefault(extremum.value), neutralLanes(extremum));
}

void NestBuilder::flagNaNs(ArrayRef<Vector> vectors, SmallVector<Value> &now) {
  unsigned firstFlag = compute.getAccs().size();
  for (auto [flag, extremum] : llvm::enumerate(ArrayRef(nest.extrema).take_front(nest.numFlags)))
    for (size_t i = 0; i < vectors.size(); i += 2) {
      const Vector &next = vectors[std::min(i + 1, vectors.size() - 1)];
      Value one = valueOf(extremum, vectors[i]), other = valueOf(extremum, next);
      Value either = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNO, one, other);
      now[firstFlag + flag] = arith::OrIOp::create(builder, loc, now[firstFlag + flag], either);
    }
}

Value NestBuilder::larger(Value value, Value before) {
  Value wins = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGT, value, before);
  return arith::SelectOp::create(builder, loc, wins, value, before);
}

Value NestBuilder::largestOf(ArrayRef<Vector> vectors, Value before) {
  const Extremum &extremum =
      *llvm::find_if(nest.extrema, [&](const Extremum &e) { return e.accumulator.getArgNumber() == nest.running; });
  Value largest[2] = {before, before};
  for (auto [i, vector] : llvm::enumerate(vectors))
    largest[i % 2] = larger(valueOf(extremum, vector), largest[i % 2]);
  return larger(largest[0], largest[1]);
}

void NestBuilder::moveReference(SmallVector<Value> &now) {
  Value maximum = now[nest.running], reference = now.back();
  Value lag = toVector(constant(builder.getFloatAttr(elementOf(nest.running), kLag)));
  Value limit = arith::AddFOp::create(builder, loc, reference, lag);
  Value beyond = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGT, maximum, limit);
  Value any = vector::ReductionOp::create(builder, loc, vector::CombiningKind::OR, beyond);
  SmallVector<unsigned> moved = relativeSums();
  SmallVector<Value> stay = llvm::map_to_vector(moved, [&](unsigned i) { return now[i]; });
  stay.push_back(reference);
  SmallVector<Value> results = emitIf(builder, loc, any, stay, [&] {
    SmallVector<Value> moves;
    Value target = toVector(reduceLanes(nest.running, maximum));
    Value factor = factorBetween(reference, target);
    for (unsigned i : moved)
      moves.push_back(arith::MulFOp::create(builder, loc, now[i], factor));
    moves.push_back(target);
    return moves;
  });
  now.back() = results.pop_back_val();
  for (auto [i, result] : llvm::zip(moved, results))
    now[i] = result;
}

void NestBuilder::storeReference(Value start, Value reference) {
  indices[vectorDim] = start;
  for (Operation *op : nest.relative)
    if (auto storeOp = dyn_cast<StoreOp>(op); storeOp && storeOp.getValue() == yielded(nest.running))
      store(vector::ExtractOp::create(builder, loc, reference, 0), storeOp.getSlice(), storeOp.getSlice().getType(),
            storeOp.getMap(), Value());
}
