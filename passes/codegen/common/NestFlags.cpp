// NaN flags of extrema. If NaN wins in a maximum or a minimum, the nest keeps flags of the lanes that have seen a NaN,
// separately from the extremum of the other numbers. Flags and extremum then take one instruction each, instead of
// three dependent ones.
#include "passes/codegen/common/NestBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

bool NestBuilder::testsHalves(const Extremum &extremum) {
  int64_t bytes = elementBytes(elementOf(extremum.accumulator.getArgNumber()));
  return nest.running < 0 && reducesLanes() && nest.lanes * bytes >= 2 * shape.bytes && 2 * lanes > nest.lanes;
}

Value NestBuilder::half(Value vector, int64_t which) {
  return vector::ExtractStridedSliceOp::create(builder, loc, vector, {which * lanes / 2}, {lanes / 2}, {1});
}

Value NestBuilder::noNaN(const Extremum &extremum) {
  Value none = toVector(constant(builder.getBoolAttr(false)));
  return testsHalves(extremum) ? half(none, 0) : none;
}

Value NestBuilder::isNaN(const Extremum &extremum, Value seen) {
  bool halves = testsHalves(extremum);
  return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNO, halves ? half(seen, 0) : seen,
                               halves ? half(seen, 1) : seen);
}

int64_t NestBuilder::carriedLanes(size_t i) {
  size_t accumulators = compute.getAccs().size();
  return i >= accumulators && nest.running < 0 && testsHalves(nest.extrema[i - accumulators]) ? lanes / 2 : lanes;
}

Value NestBuilder::flagsOf(unsigned i, ArrayRef<Value> sawNaN) {
  for (auto [extremum, flags] : llvm::zip(nest.extrema, sawNaN))
    if (extremum.accumulator.getArgNumber() == i)
      return reducesLanes() ? vector::ReductionOp::create(builder, loc, vector::CombiningKind::OR, flags) : flags;
  return {};
}

Value NestBuilder::notANumber(Type type) {
  auto element = cast<FloatType>(getElementTypeOrSelf(type));
  Value scalar = constant(builder.getFloatAttr(element, APFloat::getNaN(element.getFloatSemantics())));
  return isa<VectorType>(type) ? toVector(scalar) : scalar;
}
