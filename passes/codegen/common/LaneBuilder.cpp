// Expands affine indices for scalars and for vectors of lanes. Lane indices use 32 bits where the slice is small
// enough, because lanes of type index would be twice as wide.
#include "passes/codegen/common/LaneBuilder.h"

#include "passes/program/Slices.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

Value LaneBuilder::scalarIndex(AffineExpr expr) {
  return affine::expandAffineExpr(builder, loc, expr, indices, offsets);
}

Value LaneBuilder::linearIndex(SliceType type, AffineMap map) {
  AffineExpr linear = builder.getAffineConstantExpr(0);
  for (auto [expr, stride] : llvm::zip(map.getResults(), denseStrides(type.getShape())))
    linear = linear + expr * stride;
  bool fits = type.getNumElements() < std::numeric_limits<int32_t>::max();
  Type index = fits ? builder.getI32Type() : builder.getI64Type();
  return toVector(vectorIndex(linear, index));
}

Value LaneBuilder::vectorIndex(AffineExpr expr, Type type) {
  if (!expr.isFunctionOfDim(vectorDim)) {
    Value value = scalarIndex(expr);
    return type.isIndex() ? value : arith::IndexCastOp::create(builder, loc, type, value).getResult();
  }
  if (isa<AffineDimExpr>(expr))
    return arith::AddIOp::create(builder, loc, toVector(castIndex(indices[vectorDim], type)), laneNumbers(type));
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Value lhs = toVector(vectorIndex(binary.getLHS(), type)), rhs = toVector(vectorIndex(binary.getRHS(), type));
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return arith::AddIOp::create(builder, loc, lhs, rhs);
  case AffineExprKind::Mul:
    return arith::MulIOp::create(builder, loc, lhs, rhs);
  case AffineExprKind::FloorDiv:
    return arith::FloorDivSIOp::create(builder, loc, lhs, rhs);
  case AffineExprKind::CeilDiv:
    return arith::CeilDivSIOp::create(builder, loc, lhs, rhs);
  case AffineExprKind::Mod: {
    Value quotient = arith::FloorDivSIOp::create(builder, loc, lhs, rhs);
    return arith::SubIOp::create(builder, loc, lhs, arith::MulIOp::create(builder, loc, quotient, rhs));
  }
  default:
    llvm_unreachable("not a binary affine expression");
  }
}

Value LaneBuilder::castIndex(Value value, Type type) {
  return type.isIndex() ? value : arith::IndexCastOp::create(builder, loc, type, value).getResult();
}

Value LaneBuilder::laneNumbers(Type type) {
  auto vectorType = VectorType::get({lanes}, type);
  SmallVector<Attribute> numbers;
  for (int64_t lane = 0; lane < lanes; ++lane)
    numbers.push_back(IntegerAttr::get(type, lane));
  return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(vectorType, numbers));
}

Value LaneBuilder::tailMask(Value length) {
  return vector::CreateMaskOp::create(builder, loc, VectorType::get({lanes}, builder.getI1Type()), length);
}

Value LaneBuilder::toVector(Value value) {
  if (isa<VectorType>(value.getType()))
    return value;
  return vector::BroadcastOp::create(builder, loc, VectorType::get({lanes}, value.getType()), value);
}

Value LaneBuilder::toVectorLike(Value scalar, Value other) {
  return isa<VectorType>(other.getType()) ? toVector(scalar) : scalar;
}

Value LaneBuilder::firstLanes(Value vector, int64_t count) {
  if (cast<VectorType>(vector.getType()).getNumElements() == count)
    return vector;
  return vector::ExtractStridedSliceOp::create(builder, loc, vector, 0, count, 1);
}

Type LaneBuilder::withShape(Value value, Type element) {
  auto type = dyn_cast<VectorType>(value.getType());
  return type ? type.clone(element) : element;
}

Value LaneBuilder::zeros(VectorType type) { return constant(cast<TypedAttr>(builder.getZeroAttr(type))); }

Value LaneBuilder::constant(TypedAttr value) { return arith::ConstantOp::create(builder, loc, value); }

Value LaneBuilder::constantIndex(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }

Value LaneBuilder::add(Value value, int64_t amount) { return addValues(value, constantIndex(amount)); }

Value LaneBuilder::addValues(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }

Value LaneBuilder::sub(Value a, Value b) { return arith::SubIOp::create(builder, loc, a, b); }

Value LaneBuilder::clampedEnd(Value low, int64_t size, int64_t extent) {
  return arith::MinUIOp::create(builder, loc, add(low, size), constantIndex(extent));
}
