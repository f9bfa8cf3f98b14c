// Emits the accumulators of a nest: their start values, the reduction over lanes, vectors and threads, and the stores
// of the results.
#include "passes/codegen/common/NestBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

TypedAttr tilewright::neutralElement(vector::CombiningKind kind, Type type) {
  using Kind = vector::CombiningKind;
  if (auto floatType = dyn_cast<FloatType>(type)) {
    const llvm::fltSemantics &semantics = floatType.getFloatSemantics();
    switch (kind) {
    case Kind::MUL:
      return FloatAttr::get(type, 1.0);
    case Kind::MAXIMUMF:
    case Kind::MAXNUMF:
      return FloatAttr::get(type, APFloat::getInf(semantics, /*Negative=*/true));
    case Kind::MINIMUMF:
    case Kind::MINNUMF:
      return FloatAttr::get(type, APFloat::getInf(semantics));
    default:
      return FloatAttr::get(type, APFloat::getZero(semantics, /*Negative=*/true));
    }
  }
  unsigned width = type.getIntOrFloatBitWidth();
  switch (kind) {
  case Kind::MUL:
    return IntegerAttr::get(type, APInt(width, 1));
  case Kind::AND:
  case Kind::MINUI:
    return IntegerAttr::get(type, APInt::getAllOnes(width));
  case Kind::MAXSI:
    return IntegerAttr::get(type, APInt::getSignedMinValue(width));
  case Kind::MINSI:
    return IntegerAttr::get(type, APInt::getSignedMaxValue(width));
  default:
    return IntegerAttr::get(type, APInt::getZero(width));
  }
}

static arith::FastMathFlags regrouped(Type element) {
  return isa<FloatType>(element) ? arith::FastMathFlags::reassoc : arith::FastMathFlags::none;
}

vector::CombiningKind NestBuilder::kindOf(unsigned i) {
  return *vector::symbolizeCombiningKind(cast<StringAttr>(compute.getKinds()[i]).getValue());
}

Type NestBuilder::elementOf(unsigned i) { return compute.getBodyBlock().getArgument(i).getType(); }

bool NestBuilder::reducesLanes() { return vectorDim >= 0 && compute.isReduced(vectorDim); }

Value NestBuilder::neutral(unsigned i) { return constant(neutralElement(kindOf(i), elementOf(i))); }

Value NestBuilder::neutralLanes(const Extremum &extremum) {
  return toVector(neutral(extremum.accumulator.getArgNumber()));
}

void NestBuilder::emitReductions(IRMapping &values, Value mask) {
  emitOps(nest.numParallel, values, mask);
  SmallVector<Value> carried = startValues();
  Value correction;
  if (nest.running >= 0)
    std::tie(carried, correction) = emitRunning(values, carried);
  else
    carried = emitOwnReduction(values, mask, carried);
  storeReductions(carried, correction, mask);
}

SmallVector<Value> NestBuilder::startValues() {
  SmallVector<Value> carried;
  for (unsigned i = 0; i < compute.getAccs().size(); ++i)
    carried.push_back(startValue(i));
  for (const Extremum &extremum : ArrayRef(nest.extrema).take_front(nest.numFlags))
    carried.push_back(noNaN(extremum));
  return carried;
}

void NestBuilder::storeReductions(ValueRange carried, Value correction, Value mask) {
  SmallVector<Value> sawNaN(carried.take_back(nest.numFlags));
  for (auto [i, value] : llvm::enumerate(carried.drop_back(nest.numFlags))) {
    Value result = isShared() ? combine(i, value) : reducesLanes() ? reduceLanes(i, value) : value;
    if (isRelative(i))
      result = arith::MulFOp::create(builder, loc, result, correction);
    storeAccumulator(i, result, flagsOf(i, sawNaN), mask);
  }
}

SmallVector<Value> NestBuilder::emitOwnReduction(IRMapping &values, Value mask, ValueRange carried) {
  if (!stores)
    return emitReductionLoop(nest.numParallel, values, mask, carried);
  Value own = std::exchange(stores, Value());
  SmallVector<Value> reduced = emitIf(builder, loc, own, carried, [&] {
    return emitReductionLoop(nest.numParallel, values, mask, carried);
  });
  stores = own;
  return reduced;
}

SmallVector<Value> NestBuilder::emitReductionLoop(unsigned level, IRMapping &values, Value mask, ValueRange carried) {
  if (level == nest.order.size()) {
    mapAccumulators(values, carried);
    return nextValues(values, mask, carried);
  }
  // Sum the innermost loop separately and then add its sum. The rounding error then grows with the sum of the loops'
  // lengths, not with their product.
  bool isSeparate = level + 1 == nest.order.size() && level > nest.numParallel;
  SmallVector<Value> outerSums(carried), start(carried);
  if (isSeparate)
    for (unsigned i : floatAccumulators())
      start[i] = toVectorLike(neutral(i), carried[i]);
  SmallVector<Value> next = emitReducedLoop(level, values, mask, start);
  if (isSeparate)
    for (unsigned i : floatAccumulators())
      next[i] = arith::AddFOp::create(builder, loc, outerSums[i], next[i]);
  return next;
}

SmallVector<Value> NestBuilder::emitReducedLoop(unsigned level, IRMapping &values, Value mask, ValueRange carried) {
  return emitLoop(level, values, mask, carried, [&](IRMapping &inner, Value innerMask, ValueRange now) {
    if (level + 1 < nest.order.size())
      emitOps(level + 1, inner, innerMask);
    else {
      mapAccumulators(inner, now);
      emitOps(level + 1, inner, innerMask);
      return nextValues(inner, innerMask, now);
    }
    return emitReductionLoop(level + 1, inner, innerMask, now);
  });
}

SmallVector<unsigned> NestBuilder::floatAccumulators() {
  SmallVector<unsigned> found;
  for (unsigned i = 0; i < compute.getKinds().size(); ++i)
    if (isa<FloatType>(elementOf(i)) && cast<StringAttr>(compute.getKinds()[i]).getValue() == "add")
      found.push_back(i);
  return found;
}

void NestBuilder::mapAccumulators(IRMapping &values, ValueRange carried) {
  ValueRange accumulators = carried.drop_back(nest.numFlags);
  for (auto [arg, value] : llvm::zip_equal(compute.getBodyBlock().getArguments(), accumulators))
    values.map(arg, value);
}

SmallVector<Value> NestBuilder::nextValues(IRMapping &values, Value mask, ValueRange carried) {
  SmallVector<Value> next;
  auto yield = cast<YieldOp>(compute.getBodyBlock().getTerminator());
  for (auto [yielded, before] : llvm::zip(yield.getValues(), carried)) {
    Value value = values.lookupOrDefault(yielded);
    if (isa<VectorType>(before.getType()))
      value = toVector(value);
    if (mask && reducesLanes())
      value = arith::SelectOp::create(builder, loc, mask, value, before);
    next.push_back(value);
  }
  for (auto [extremum, before] : llvm::zip(nest.extrema, carried.take_back(nest.numFlags))) {
    Value seen = toVector(values.lookupOrDefault(extremum.value));
    if (mask && reducesLanes())
      seen = arith::SelectOp::create(builder, loc, mask, seen, neutralLanes(extremum));
    next.push_back(arith::OrIOp::create(builder, loc, before, isNaN(extremum, seen)));
  }
  return next;
}

Value NestBuilder::startValue(unsigned i) {
  Value start = isShared() || reducesLanes() ? neutral(i) : constant(cast<TypedAttr>(compute.getInits()[i]));
  return vectorDim < 0 ? start : toVector(start);
}

Value NestBuilder::combine(unsigned i, Value value) {
  vector::CombiningKind kind = kindOf(i);
  if (reducesLanes())
    value = vector::ReductionOp::create(builder, loc, kind, value, regrouped(elementOf(i)));
  value = threads->combine(builder, i, kind, value);
  Value init = constant(cast<TypedAttr>(compute.getInits()[i]));
  return vector::makeArithReduction(builder, loc, kind, value, toVectorLike(init, value));
}

Value NestBuilder::reduceLanes(unsigned i, Value value) {
  Value init = constant(cast<TypedAttr>(compute.getInits()[i]));
  arith::FastMathFlags flags = regrouped(elementOf(i));
  vector::CombiningKind kind = kindOf(i);
  if (llvm::any_of(nest.extrema, [&](const Extremum &extremum) { return extremum.accumulator.getArgNumber() == i; })) {
    using Kind = vector::CombiningKind;
    kind = kind == Kind::MAXIMUMF || kind == Kind::MAXNUMF ? Kind::MAXNUMF : Kind::MINNUMF;
    flags = arith::FastMathFlags::nnan | arith::FastMathFlags::nsz; // no lane holds a NaN: flags hold those that win
  }
  return vector::ReductionOp::create(builder, loc, kind, value, init, flags);
}

void NestBuilder::storeAccumulator(unsigned i, Value value, Value sawNaN, Value mask) {
  Type type = compute.getBodyBlock().getArgument(i).getType();
  if (sawNaN)
    value = arith::SelectOp::create(builder, loc, sawNaN, notANumber(value.getType()), value);
  Value slice = compute.getAccs()[i];
  auto sliceType = cast<SliceType>(slice.getType());
  Type stored = sliceType.getElementType();
  if (stored != type)
    value = arith::TruncFOp::create(builder, loc, withShape(value, stored), value);
  AffineMap map = cast<AffineMapAttr>(compute.getAccMaps()[i]).getValue();
  Value leads = threads ? threads->leads(builder, /*accumulator=*/true) : Value();
  if (leads && stores)
    leads = arith::AndIOp::create(builder, loc, leads, stores);
  emitIf(builder, loc, leads ? leads : stores, [&] { store(value, slice, sliceType, map, mask); });
}
