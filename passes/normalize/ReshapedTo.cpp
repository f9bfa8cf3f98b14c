#include "passes/normalize/ReshapedTo.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

using namespace mlir;

Value tilewright::reshapedTo(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(value.getType());
  auto target = RankedTensorType::get(shape, type.getElementType());
  if (type == target)
    return value;
  bool expands = type.getRank() < target.getRank();
  auto groups =
      expands ? getReassociationIndicesForReshape(target, type) : getReassociationIndicesForReshape(type, target);
  if (!groups) {
    assert(type.getRank() > 1 && "one dim refines every shape");
    return reshapedTo(builder, loc, reshapedTo(builder, loc, value, {type.getNumElements()}), shape);
  }
  if (expands)
    return tensor::ExpandShapeOp::create(builder, loc, target, value, *groups);
  return tensor::CollapseShapeOp::create(builder, loc, target, value, *groups);
}
