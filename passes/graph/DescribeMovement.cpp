// A movement op has one map per operand over the result's index space, with a guard where the operand covers only part
// of it. The raising decides what the rest of the result holds (padding, the other pieces).
#include "passes/graph/DescribeMovement.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "passes/support/AffineAlgebra.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tilewright {

LogicalResult refuse(std::string *reason, const Twine &why) {
  if (reason)
    *reason = why.str();
  return failure();
}

bool isKnownElement(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type))
    return integer.isSignless() && integer.getWidth() <= 64;
  return isa<IndexType, Float16Type, BFloat16Type, Float32Type, Float64Type>(type);
}

LogicalResult checkTensor(Type type, std::string *reason) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return refuse(reason, "not a ranked tensor");
  if (!tensor.hasStaticShape())
    return refuse(reason, "dynamic shape");
  if (tensor.getEncoding())
    return refuse(reason, "tensor with an encoding");
  if (!isKnownElement(tensor.getElementType()))
    return refuse(reason, "unsupported element type");
  int64_t elements = 1;
  for (int64_t extent : tensor.getShape())
    if (llvm::MulOverflow(elements, extent, elements) || elements > (int64_t(1) << 48))
      return refuse(reason, "tensor too large");
  return elements == 0 ? refuse(reason, "tensor without elements") : success();
}

namespace {

AffineExpr dim(Operation *op, unsigned position) { return getAffineDimExpr(position, op->getContext()); }

/// Builds a guarded access over the result's index space, dim by dim.
struct AccessBuilder {
  SmallVector<AffineExpr> indices, constraints;
  SmallVector<bool> equalities;

  /// Guards the access so that `index` is in [0, size).
  void require(AffineExpr index, int64_t size) {
    constraints.append({index, size - 1 - index});
    equalities.append({false, false});
  }
  void requireZero(AffineExpr expr) {
    constraints.push_back(expr);
    equalities.push_back(true);
  }
  void finish(TensorExpr &expr, OpOperand &operand) {
    IntegerSet guard;
    if (!constraints.empty())
      guard = conjoin(IntegerSet::get(expr.domain.size(), 0, constraints, equalities), {}, expr.domain);
    AffineMap map = AffineMap::get(expr.domain.size(), 0, indices, operand.getOwner()->getContext());
    expr.inputs.push_back({operand.get(), simplifyInDomain(map, expr.domain), guard, operand.getOperandNumber()});
  }
};

LogicalResult describeReshape(Operation *op, TensorExpr &expr, std::string *) {
  auto source = cast<RankedTensorType>(op->getOperand(0).getType());
  expr.inputs.push_back({op->getOperand(0), reshapeMap(op->getContext(), source.getShape(), expr.domain), {}, 0});
  return success();
}

LogicalResult describeExtract(tensor::ExtractSliceOp op, TensorExpr &expr, std::string *reason) {
  if (ShapedType::isDynamicShape(op.getStaticOffsets()) || ShapedType::isDynamicShape(op.getStaticStrides()))
    return refuse(reason, "slice with dynamic offsets or strides");
  AccessBuilder access;
  llvm::SmallBitVector dropped = op.getDroppedDims();
  unsigned position = 0;
  for (auto [i, offset, stride] : llvm::enumerate(op.getStaticOffsets(), op.getStaticStrides())) {
    AffineExpr base = getAffineConstantExpr(offset, op.getContext());
    access.indices.push_back(dropped.test(i) ? base : base + dim(op, position++) * stride);
  }
  access.finish(expr, op.getSourceMutable());
  return success();
}

LogicalResult describeInsert(tensor::InsertSliceOp op, TensorExpr &expr, std::string *reason) {
  if (ShapedType::isDynamicShape(op.getStaticOffsets()) || ShapedType::isDynamicShape(op.getStaticStrides()))
    return refuse(reason, "slice with dynamic offsets or strides");
  AccessBuilder source;
  llvm::SmallBitVector dropped = op.getDroppedDims();
  for (auto [i, offset, size, stride] :
       llvm::enumerate(op.getStaticOffsets(), op.getStaticSizes(), op.getStaticStrides())) {
    AffineExpr distance = dim(op, i) - offset, index = distance.floorDiv(stride);
    source.require(index, size);
    if (stride != 1)
      source.requireZero(distance % stride);
    if (!dropped.test(i))
      source.indices.push_back(index);
  }
  source.finish(expr, op.getSourceMutable());
  // Elements of an empty tensor that are not overwritten have no value.
  if (op.getDest().getDefiningOp<tensor::EmptyOp>())
    return success();
  AccessBuilder dest;
  for (unsigned i = 0; i < expr.domain.size(); ++i)
    dest.indices.push_back(dim(op, i));
  dest.finish(expr, op.getDestMutable());
  return success();
}

LogicalResult describePad(tensor::PadOp op, TensorExpr &expr, std::string *reason) {
  Value padding = op.getConstantPaddingValue();
  if (!padding || !constantElement(padding))
    return refuse(reason, "pad with a computed value");
  if (ShapedType::isDynamicShape(op.getStaticLow()))
    return refuse(reason, "pad with dynamic amounts");
  AccessBuilder access;
  for (auto [i, low, size] : llvm::enumerate(op.getStaticLow(), op.getSourceType().getShape())) {
    access.indices.push_back(dim(op, i) - low);
    access.require(access.indices.back(), size);
  }
  access.finish(expr, op.getSourceMutable());
  return success();
}

LogicalResult describeConcat(tensor::ConcatOp op, TensorExpr &expr, std::string *) {
  int64_t offset = 0;
  for (OpOperand &operand : op->getOpOperands()) {
    int64_t size = cast<RankedTensorType>(operand.get().getType()).getDimSize(op.getDim());
    AccessBuilder piece;
    for (unsigned i = 0; i < expr.domain.size(); ++i)
      piece.indices.push_back(i == op.getDim() ? dim(op, i) - offset : dim(op, i));
    piece.require(piece.indices[op.getDim()], size);
    piece.finish(expr, operand);
    offset += size;
  }
  return success();
}

bool isMovement(Operation *op) {
  return isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ExtractSliceOp, tensor::InsertSliceOp,
             tensor::PadOp, tensor::ConcatOp>(op);
}
} // namespace

LogicalResult describeMovement(Operation *op, TensorExpr &expr, std::string *reason) {
  if (!isMovement(op))
    return refuse(reason, "not a tensor expression");
  for (Type type : llvm::concat<Type>(op->getOperandTypes(), op->getResultTypes()))
    if (isa<ShapedType>(type) && failed(checkTensor(type, reason)))
      return failure();
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  expr.kind = ExprKind::movement;
  expr.domain.assign(type.getShape().begin(), type.getShape().end());
  expr.results.push_back(AffineMap::getMultiDimIdentityMap(type.getRank(), op->getContext()));
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<tensor::ExpandShapeOp, tensor::CollapseShapeOp>([&](auto op) { return describeReshape(op, expr, reason); })
      .Case([&](tensor::ExtractSliceOp op) { return describeExtract(op, expr, reason); })
      .Case([&](tensor::InsertSliceOp op) { return describeInsert(op, expr, reason); })
      .Case([&](tensor::PadOp op) { return describePad(op, expr, reason); })
      .Default([&](Operation *op) { return describeConcat(cast<tensor::ConcatOp>(op), expr, reason); });
}

} // namespace tilewright
