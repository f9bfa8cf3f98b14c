#include "passes/normalize/layers/StackedTensors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tilewright;

RankedTensorType tilewright::withFirst(int64_t size, RankedTensorType type) {
  SmallVector<int64_t> shape{size};
  llvm::append_range(shape, type.getShape());
  return RankedTensorType::get(shape, type.getElementType());
}

Value tilewright::reshape(OpBuilder &builder, Location loc, Value value, RankedTensorType type) {
  RankedTensorType from = typeOf(value);
  if (from == type)
    return value;
  auto groups = getReassociationIndicesForReshape(from, type);
  assert(groups && "one shape refines the other");
  if (from.getRank() > type.getRank())
    return tensor::CollapseShapeOp::create(builder, loc, type, value, *groups);
  return tensor::ExpandShapeOp::create(builder, loc, type, value, *groups);
}

Value tilewright::rows(OpBuilder &builder, Location loc, Value whole, OpFoldResult first, int64_t count) {
  RankedTensorType type = typeOf(whole);
  SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0)), sizes,
      strides(type.getRank(), builder.getIndexAttr(1));
  offsets.front() = first;
  for (int64_t size : type.getShape())
    sizes.push_back(builder.getIndexAttr(size));
  sizes.front() = builder.getIndexAttr(count);
  return tensor::ExtractSliceOp::create(builder, loc, whole, offsets, sizes, strides);
}

Value tilewright::sideBySide(OpBuilder &builder, Location loc, ArrayRef<Value> tensors) {
  RankedTensorType type = typeOf(tensors.front());
  DenseElementsAttr constant;
  if (llvm::all_equal(tensors) && matchPattern(tensors.front(), m_Constant(&constant)) && constant.isSplat()) {
    auto whole = withFirst(tensors.size(), type);
    return arith::ConstantOp::create(builder, loc, constant.resizeSplat(whole));
  }
  SmallVector<Value> parts;
  for (Value tensor : tensors)
    parts.push_back(reshape(builder, loc, tensor, withFirst(1, type)));
  return tensor::ConcatOp::create(builder, loc, /*dim=*/0, parts);
}

namespace {
/// Offsets and sizes of a part of a tensor.
struct Part {
  SmallVector<int64_t> offsets, sizes;
};
} // namespace

/// Returns the part of what a reshape reads that is this part of its result, or nothing if it is none.
static std::optional<Part> beforeReshape(Operation *reshape, ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes) {
  RankedTensorType from = typeOf(reshape->getOperand(0)), to = typeOf(reshape->getResult(0));
  bool collapses = from.getRank() > to.getRank();
  auto groups = collapses ? cast<tensor::CollapseShapeOp>(reshape).getReassociationIndices()
                          : cast<tensor::ExpandShapeOp>(reshape).getReassociationIndices();
  Part part{SmallVector<int64_t>(from.getRank(), 0), SmallVector<int64_t>(from.getShape())};
  RankedTensorType longer = collapses ? from : to;
  for (auto [single, group] : llvm::enumerate(groups)) {
    auto isLong = [&](int64_t dim) { return longer.getDimSize(dim) != 1; };
    auto dim = llvm::find_if(group, isLong);
    if (dim == group.end())
      continue;
    unsigned own = collapses ? *dim : single, other = collapses ? single : *dim;
    bool isWhole = llvm::all_of(collapses ? ReassociationIndices{int64_t(single)} : group,
                                [&](int64_t each) { return sizes[each] == to.getDimSize(each); });
    if (isWhole)
      continue;
    if (llvm::count_if(group, isLong) > 1)
      return std::nullopt;
    part.offsets[own] = offsets[other];
    part.sizes[own] = sizes[other];
  }
  return part;
}

static bool isElementwise(linalg::GenericOp op) {
  return op.getNumLoops() == op.getNumParallelLoops() && op.getNumResults() == 1 && !op.hasIndexSemantics() &&
         op.getIndexingMapMatchingResult(op->getResult(0)).isIdentity() &&
         llvm::all_of(op.getDpsInputOperands(), [&](OpOperand *operand) {
           return isa<RankedTensorType>(operand->get().getType()) &&
                  op.getMatchingIndexingMap(operand).isProjectedPermutation();
         });
}

Value tilewright::sliceOf(OpBuilder &builder, Location loc, Value whole, ArrayRef<int64_t> offsets,
                          ArrayRef<int64_t> sizes) {
  RankedTensorType type = typeOf(whole), own = RankedTensorType::get(sizes, type.getElementType());
  if (own == type)
    return whole;
  Operation *made = whole.getDefiningOp();
  if (auto op = dyn_cast_or_null<linalg::GenericOp>(made); op && isElementwise(op)) {
    SmallVector<Value> inputs;
    SmallVector<AffineMap> maps;
    for (OpOperand *operand : op.getDpsInputOperands()) {
      Part part;
      SmallVector<AffineExpr> indices;
      AffineMap map = op.getMatchingIndexingMap(operand);
      for (AffineExpr index : map.getResults()) {
        unsigned dim = cast<AffineDimExpr>(index).getPosition();
        part.offsets.push_back(offsets[dim]);
        part.sizes.push_back(sizes[dim]);
        indices.push_back(index + offsets[dim]);
      }
      // Parts of what does not change in the loop would be tensors of their own, with a binding each.
      bool isOutside = operand->get().getParentBlock() != op->getBlock();
      inputs.push_back(isOutside ? operand->get() : sliceOf(builder, loc, operand->get(), part.offsets, part.sizes));
      maps.push_back(isOutside ? AffineMap::get(map.getNumDims(), 0, indices, builder.getContext()) : map);
    }
    maps.push_back(op.getIndexingMapMatchingResult(op->getResult(0)));
    Value empty = tensor::EmptyOp::create(builder, loc, sizes, type.getElementType());
    auto sliced = linalg::GenericOp::create(builder, loc, TypeRange{own}, inputs, ValueRange{empty}, maps,
                                            op.getIteratorTypesArray());
    IRMapping mapping;
    op.getRegion().cloneInto(&sliced.getRegion(), mapping);
    return sliced.getResult(0);
  }
  if (auto concat = dyn_cast_or_null<tensor::ConcatOp>(made);
      concat && sizes[concat.getDim()] == type.getDimSize(concat.getDim())) {
    SmallVector<Value> parts;
    for (Value part : concat.getInputs()) {
      SmallVector<int64_t> partSizes(sizes);
      partSizes[concat.getDim()] = typeOf(part).getDimSize(concat.getDim());
      parts.push_back(sliceOf(builder, loc, part, offsets, partSizes));
    }
    return tensor::ConcatOp::create(builder, loc, concat.getDim(), parts);
  }
  if (isa_and_present<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(made))
    if (std::optional<Part> part = beforeReshape(made, offsets, sizes))
      return reshape(builder, loc, sliceOf(builder, loc, made->getOperand(0), part->offsets, part->sizes), own);
  auto slice = dyn_cast_or_null<tensor::ExtractSliceOp>(made);
  if (slice && slice.hasUnitStride() && slice.getSourceType().getRank() == type.getRank() &&
      !ShapedType::isDynamicShape(slice.getStaticOffsets())) {
    SmallVector<int64_t> sum =
        llvm::to_vector(llvm::map_range(llvm::zip_equal(offsets, slice.getStaticOffsets()),
                                        [](auto pair) { return std::get<0>(pair) + std::get<1>(pair); }));
    return sliceOf(builder, loc, slice.getSource(), sum, sizes);
  }
  auto attributes = [&](ArrayRef<int64_t> values) {
    return llvm::map_to_vector(values, [&](int64_t value) { return OpFoldResult(builder.getIndexAttr(value)); });
  };
  SmallVector<OpFoldResult> ones(sizes.size(), builder.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(builder, loc, whole, attributes(offsets), attributes(sizes), ones);
}

/// Returns what an op reads if all it does is to convert the elements of a tensor by `Conversion`, or null.
template <typename Conversion> static Value beforeConversion(Operation *op) {
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  if (!generic || !isElementwise(generic) || generic.getNumDpsInputs() != 1 ||
      !generic.getIndexingMapsArray().front().isIdentity())
    return {};
  Block &body = *generic.getBody();
  auto converted = dyn_cast<Conversion>(body.front());
  return converted && converted.getIn() == body.getArgument(0) &&
                 body.getTerminator()->getOperand(0) == converted.getResult()
             ? generic.getDpsInputs().front()
             : Value();
}

static Value beforeReshapes(Value value) {
  while (isa_and_present<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

Value tilewright::beforeReshapes(Value value, bool alsoRoundings) {
  value = ::beforeReshapes(value);
  if (!alsoRoundings)
    return value;
  while (Value narrow = beforeConversion<arith::ExtFOp>(value.getDefiningOp())) {
    Value wide = beforeConversion<arith::TruncFOp>(::beforeReshapes(narrow).getDefiningOp());
    if (!wide || typeOf(wide).getElementType() != typeOf(value).getElementType())
      break;
    value = ::beforeReshapes(wide);
  }
  return value;
}

Type tilewright::narrowElement(Value tensor) {
  Operation *made = tensor.getDefiningOp();
  if (Value narrow = beforeConversion<arith::ExtFOp>(made))
    return typeOf(narrow).getElementType();
  return isa_and_present<linalg::TransposeOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp>(made)
             ? narrowElement(made->getOperand(0))
             : typeOf(tensor).getElementType();
}

linalg::LinalgOp tilewright::onlyRounding(Value tensor) {
  RankedTensorType type = typeOf(tensor);
  while (tensor.hasOneUse()) {
    Operation *reader = *tensor.user_begin();
    auto rounding = dyn_cast<linalg::GenericOp>(reader);
    if (rounding && beforeConversion<arith::TruncFOp>(reader) == tensor &&
        getReassociationIndicesForReshape(type.clone(typeOf(reader->getResult(0)).getElementType()),
                                          typeOf(reader->getResult(0))))
      return rounding;
    if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(reader))
      break;
    tensor = reader->getResult(0);
  }
  return {};
}

Value tilewright::withoutWidening(OpBuilder &builder, Value tensor) {
  Operation *made = tensor.getDefiningOp();
  if (Value narrow = beforeConversion<arith::ExtFOp>(made))
    return narrow;
  auto transpose = dyn_cast_or_null<linalg::TransposeOp>(made);
  if (!transpose && !isa_and_present<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(made))
    return tensor;
  Value source = made->getOperand(0), narrow = withoutWidening(builder, source);
  if (narrow == source)
    return tensor;
  auto type = RankedTensorType::get(typeOf(tensor).getShape(), typeOf(narrow).getElementType());
  if (!transpose)
    return reshape(builder, tensor.getLoc(), narrow, type);
  Value empty = tensor::EmptyOp::create(builder, tensor.getLoc(), type.getShape(), type.getElementType());
  return linalg::TransposeOp::create(builder, tensor.getLoc(), narrow, empty, transpose.getPermutation())->getResult(0);
}
