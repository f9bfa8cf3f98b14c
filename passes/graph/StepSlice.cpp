#include "passes/graph/StepSlice.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace mlir;
using namespace tilewright;

Value tilewright::throughViews(Value value) {
  while (isa_and_present<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

static std::optional<StepSlice> linear(OpFoldResult index, scf::ForOp loop);

/// Returns an index that does not get beyond a constant, which one of the operands is.
static std::optional<StepSlice> bounded(Operation *op, scf::ForOp loop) {
  auto index = linear(op->getOperand(0), loop), bound = linear(op->getOperand(1), loop);
  if (index && bound && bound->moves())
    std::swap(index, bound);
  if (!index || !bound || bound->moves() || index->stride <= 0 || (bound->offset - index->offset) % index->stride != 0)
    return std::nullopt;
  int64_t step = (bound->offset - index->offset) / index->stride;
  if (isa<arith::MinSIOp>(op))
    index->to = std::min(index->to, step);
  else
    index->from = std::max(index->from, step);
  return index->from <= index->to ? index : std::nullopt;
}

/// Returns an index as a function of the number of the step.
static std::optional<StepSlice> linear(OpFoldResult index, scf::ForOp loop) {
  if (auto constant = getConstantIntValue(index))
    return StepSlice{*constant, 0};
  auto value = dyn_cast<Value>(index);
  if (value == loop.getInductionVar()) {
    auto from = getConstantIntValue(loop.getLowerBound()), step = getConstantIntValue(loop.getStep());
    return from && step ? std::optional(StepSlice{*from, *step}) : std::nullopt;
  }
  Operation *op = value.getDefiningOp();
  if (isa_and_present<arith::MinSIOp, arith::MaxSIOp>(op))
    return bounded(op, loop);
  if (!op || !isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::IndexCastOp>(op))
    return std::nullopt;
  auto left = linear(op->getOperand(0), loop);
  if (!left || isa<arith::IndexCastOp>(op))
    return left;
  auto right = linear(op->getOperand(1), loop);
  if (!right || !left->alwaysMoves() || !right->alwaysMoves())
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return StepSlice{left->offset + right->offset, left->stride + right->stride};
  if (isa<arith::SubIOp>(op))
    return StepSlice{left->offset - right->offset, left->stride - right->stride};
  if (left->stride != 0 && right->stride != 0)
    return std::nullopt;
  return StepSlice{left->offset * right->offset, left->offset * right->stride + left->stride * right->offset};
}

/// Returns true if the slice has whole dims behind its outermost dim of more than one element.
static bool isContiguous(ArrayRef<int64_t> sizes, ArrayRef<int64_t> shape) {
  const int64_t *longer = llvm::find_if(sizes, [](int64_t size) { return size != 1; });
  size_t behind = longer == sizes.end() ? sizes.size() : longer - sizes.begin() + 1;
  return sizes.drop_front(behind) == shape.drop_front(behind);
}

std::optional<StepSlice> tilewright::stepSlice(OffsetSizeAndStrideOpInterface slice, ArrayRef<int64_t> shape,
                                               scf::ForOp loop) {
  if (ShapedType::isDynamicShape(shape) || ShapedType::isDynamicShape(slice.getStaticSizes()) ||
      !slice.hasUnitStride() || !isContiguous(slice.getStaticSizes(), shape))
    return std::nullopt;
  StepSlice whole{0, 0};
  for (auto [index, size] : llvm::zip_equal(slice.getMixedOffsets(), shape)) {
    auto own = linear(index, loop);
    if (!own)
      return std::nullopt;
    if (whole.moves() && own->moves() && !(whole.alwaysMoves() && own->alwaysMoves()))
      return std::nullopt;
    whole.offset = whole.offset * size + own->offset;
    whole.stride = whole.stride * size + own->stride;
    if (!own->alwaysMoves()) {
      whole.from = own->from;
      whole.to = own->to;
    }
  }
  return whole;
}
