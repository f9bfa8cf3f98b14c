#include "passes/normalize/TransposedConvolution.h"

#include "dialects/tile/TileAttributeNames.h"
#include "passes/normalize/AccumulatorInit.h"
#include "passes/normalize/ReshapedTo.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// One image dim of a transposed convolution.
struct SpreadDim {
  int64_t size;           ///< points of the image, without the zeros
  int64_t window, stride; ///< points of a window, which zeros spread, and between two points of the image
  int64_t offset;         ///< zeros in front of the image
  int64_t result;         ///< points of the result

  /// Returns how many points of the image a window covers at most.
  int64_t taps() const { return llvm::divideCeil(window, stride); }
  /// Returns how far windows reach over the ends of the image, in its points.
  int64_t low() const { return offset / stride; }
  int64_t high() const { return last() + taps() - size; }
  /// Returns the number of windows with different points of the image; each has `stride` results.
  int64_t windows() const { return last() + low() + 1; }
  /// Returns how many results of the first window precede the result.
  int64_t crop() const { return stride - 1 - offset % stride; }

private:
  /// Returns the point of the image at which the last window begins.
  int64_t last() const { return llvm::divideCeilSigned(result - 1 - offset, stride); }
};

/// A transposed convolution of channels first.
struct Transposed {
  linalg::LinalgOp op;
  Value image;   ///< without the zeros: batch, channels, points
  Value weights; ///< not flipped: channels, filters, points of a window
  SmallVector<SpreadDim> dims;

  int64_t rank() const { return dims.size(); }
  ArrayRef<int64_t> imageShape() const { return cast<RankedTensorType>(image.getType()).getShape(); }
  ArrayRef<int64_t> weightShape() const { return cast<RankedTensorType>(weights.getType()).getShape(); }
};

bool isIndex(Value value, unsigned dim) {
  auto index = value.getDefiningOp<linalg::IndexOp>();
  return index && index.getDim() == dim;
}

/// Returns the weights of a transposed convolution, given the flipped ones with filters first; null: other weights.
Value unflipped(Value flipped) {
  auto generic = flipped.getDefiningOp<linalg::GenericOp>();
  if (!generic || generic->getNumResults() != 1 || generic.getNumParallelLoops() != generic.getNumLoops() ||
      !generic.getMatchingIndexingMap(generic.getDpsInitOperand(0)).isIdentity())
    return {};
  auto yield = cast<linalg::YieldOp>(generic.getBlock()->getTerminator());
  auto extract = yield.getOperand(0).getDefiningOp<tensor::ExtractOp>();
  if (!extract || extract.getIndices().size() != generic.getNumLoops() || generic.getNumLoops() < 3)
    return {};
  ValueRange at = extract.getIndices();
  if (!isIndex(at[0], 1) || !isIndex(at[1], 0) || !extract.getTensor().getType().hasStaticShape())
    return {};
  for (unsigned dim = 2; dim < at.size(); ++dim) {
    auto from = at[dim].getDefiningOp<arith::SubIOp>();
    if (!from || getConstantIntValue(from.getLhs()) != extract.getTensor().getType().getDimSize(dim) - 1 ||
        !isIndex(from.getRhs(), dim))
      return {};
  }
  return extract.getTensor();
}

bool isZeros(Value tensor) {
  auto fill = tensor.getDefiningOp<linalg::FillOp>();
  return fill && (matchPattern(fill.getInputs()[0], m_AnyZeroFloat()) || matchPattern(fill.getInputs()[0], m_Zero()));
}

bool hasUnitSteps(linalg::LinalgOp op) {
  return llvm::all_of(ArrayRef<StringRef>{"strides", "dilations"}, [&](StringRef name) {
    auto steps = op->getAttrOfType<DenseIntElementsAttr>(name);
    return !steps || llvm::all_of(steps.getValues<int64_t>(), [](int64_t step) { return step == 1; });
  });
}

std::optional<Transposed> match(linalg::LinalgOp op) {
  if (!isa<linalg::Conv1DNcwFcwOp, linalg::Conv2DNchwFchwOp, linalg::Conv3DNcdhwFcdhwOp>(op) ||
      op.hasDynamicShape() || !op.hasPureTensorSemantics() || !hasUnitSteps(op))
    return std::nullopt;
  auto spread = op->getOperand(0).getDefiningOp<tensor::InsertSliceOp>();
  Value weights = unflipped(op->getOperand(1));
  if (!spread || !weights || !isZeros(spread.getDest()))
    return std::nullopt;
  Transposed found{op, spread.getSource(), weights, {}};
  ArrayRef<int64_t> image = found.imageShape(), whole = spread.getDestType().getShape();
  ArrayRef<int64_t> offsets = spread.getStaticOffsets(), strides = spread.getStaticStrides();
  if (image.size() != whole.size() || image[0] != whole[0] || image[1] != whole[1])
    return std::nullopt;
  ArrayRef<int64_t> result = cast<RankedTensorType>(op->getResult(0).getType()).getShape();
  for (size_t dim = 2; dim < image.size(); ++dim) {
    if (ShapedType::isDynamic(offsets[dim]) || ShapedType::isDynamic(strides[dim]))
      return std::nullopt;
    found.dims.push_back({image[dim], found.weightShape()[dim], strides[dim], offsets[dim], result[dim]});
  }
  bool spreads = llvm::any_of(found.dims, [](const SpreadDim &dim) { return dim.stride > 1; });
  return spreads ? std::optional(std::move(found)) : std::nullopt;
}

Value transposed(OpBuilder &builder, Location loc, Value tensor, ArrayRef<int64_t> order) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape = llvm::map_to_vector(order, [&](int64_t dim) { return type.getDimSize(dim); });
  Value into = tensor::EmptyOp::create(builder, loc, shape, type.getElementType());
  return linalg::TransposeOp::create(builder, loc, tensor, into, order)->getResult(0);
}

/// Convolves an image without steps; channels are last in the image, and filters in the weights.
Value convolved(OpBuilder &builder, Location loc, Value image, Value weights, Value start, int64_t rank) {
  Type type = start.getType();
  if (rank == 1)
    return linalg::Conv1DNwcWcfOp::create(builder, loc, type, ValueRange{image, weights}, start).getResult(0);
  if (rank == 2)
    return linalg::Conv2DNhwcHwcfOp::create(builder, loc, type, ValueRange{image, weights}, start).getResult(0);
  return linalg::Conv3DNdhwcDhwcfOp::create(builder, loc, type, ValueRange{image, weights}, start).getResult(0);
}

/// Pads a tensor with zeros.
Value padded(OpBuilder &builder, Location loc, Value tensor, ArrayRef<int64_t> low, ArrayRef<int64_t> high) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape(type.getShape());
  for (auto [size, before, behind] : llvm::zip_equal(shape, low, high))
    size += before + behind;
  if (llvm::equal(shape, type.getShape()))
    return tensor;
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type.getElementType()));
  return tensor::PadOp::create(builder, loc, type.clone(shape), tensor, getAsIndexOpFoldResult(builder.getContext(), low),
                               getAsIndexOpFoldResult(builder.getContext(), high), zero)
      .getResult();
}

/// Returns the image that windows of the rewritten convolution read, channels last.
Value imageOf(OpBuilder &builder, const Transposed &what) {
  Location loc = what.image.getLoc();
  SmallVector<int64_t> order{0}, low{0}, high{0};
  for (auto [number, dim] : llvm::enumerate(what.dims)) {
    order.push_back(number + 2);
    low.push_back(dim.low());
    high.push_back(dim.high());
  }
  order.push_back(1);
  low.push_back(0);
  high.push_back(0);
  return padded(builder, loc, transposed(builder, loc, what.image, order), low, high);
}

/// Reverses the order along one dim. Slices are joined again, because where weights are laid out when a program is
/// loaded, IREE does not accept a dim that is read backwards.
Value reversed(OpBuilder &builder, Location loc, Value tensor, int64_t dim) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.getDimSize(dim) == 1)
    return tensor;
  SmallVector<int64_t> shape(type.getShape()), first(type.getRank());
  SmallVector<OpFoldResult> steps(type.getRank(), builder.getIndexAttr(1));
  int64_t extent = std::exchange(shape[dim], 1);
  SmallVector<Value> slices;
  for (first[dim] = extent - 1; first[dim] >= 0; --first[dim])
    slices.push_back(tensor::ExtractSliceOp::create(
        builder, loc, tensor, getAsIndexOpFoldResult(builder.getContext(), first),
        getAsIndexOpFoldResult(builder.getContext(), shape), steps));
  return tensor::ConcatOp::create(builder, loc, dim, slices).getResult();
}

/// Returns the weights of the rewritten convolution: points of its windows, in which the last is the first of the given
/// ones, channels, results of a window, filters. Zeros in front of the given ones make whole windows.
Value weightsOf(OpBuilder &builder, const Transposed &what) {
  Location loc = what.weights.getLoc();
  int64_t rank = what.rank(), channels = what.weightShape()[0], filters = what.weightShape()[1], results = filters;
  SmallVector<int64_t> low(2), high(rank + 2), split{channels, filters}, taps, phases, kernel;
  for (auto [number, dim] : llvm::enumerate(what.dims)) {
    low.push_back(dim.taps() * dim.stride - dim.window);
    taps.push_back(2 + 2 * number);
    phases.push_back(3 + 2 * number);
    split.append({dim.taps(), dim.stride});
    kernel.push_back(dim.taps());
    results *= dim.stride;
  }
  Value weights = reshapedTo(builder, loc, padded(builder, loc, what.weights, low, high), split);
  for (int64_t dim : taps)
    weights = reversed(builder, loc, weights, dim);
  SmallVector<int64_t> order(taps);
  order.push_back(0);
  llvm::append_range(order, phases);
  order.push_back(1);
  kernel.append({channels, results});
  return reshapedTo(builder, loc, transposed(builder, loc, weights, order), kernel);
}

/// Returns the result, channels last, without the convolution's start.
Value resultOf(const Transposed &what) {
  linalg::LinalgOp op = what.op;
  OpBuilder builder(op);
  Location loc = op.getLoc();
  int64_t rank = what.rank(), filters = what.weightShape()[1];
  Value image = imageOf(builder, what), weights = weightsOf(builder, what);
  SmallVector<int64_t> sums{what.imageShape()[0]}, split, order{0}, shape{sums[0]}, first{0}, size{sums[0]};
  for (const SpreadDim &dim : what.dims)
    sums.push_back(dim.windows());
  split = sums;
  sums.push_back(cast<RankedTensorType>(weights.getType()).getShape().back());
  Value start = zeros(builder, loc, sums, getElementTypeOrSelf(op->getResult(0)));
  Value points = convolved(builder, loc, image, weights, start, rank);
  if (Attribute layout = op->getAttr(kFormAttr))
    points.getDefiningOp()->setAttr(kFormAttr, layout);

  // Batch, windows, results of a window, filters: the results of each window go beside each other.
  for (auto [number, dim] : llvm::enumerate(what.dims)) {
    split.push_back(dim.stride);
    order.append({static_cast<int64_t>(number) + 1, static_cast<int64_t>(number) + 1 + rank});
    shape.push_back(dim.windows() * dim.stride);
    first.push_back(dim.crop());
    size.push_back(dim.result);
  }
  split.push_back(filters);
  order.push_back(1 + 2 * rank);
  for (SmallVector<int64_t> *sizes : {&shape, &size})
    sizes->push_back(filters);
  first.push_back(0);
  Value result = transposed(builder, loc, reshapedTo(builder, loc, points, split), order);
  result = reshapedTo(builder, loc, result, shape);
  if (shape == size)
    return result;
  MLIRContext *context = builder.getContext();
  SmallVector<OpFoldResult> steps(rank + 2, builder.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(builder, loc, result, getAsIndexOpFoldResult(context, first),
                                        getAsIndexOpFoldResult(context, size), steps)
      .getResult();
}
} // namespace

SmallVector<Value> tilewright::rewriteTransposedConvolutions(func::FuncOp function) {
  SmallVector<Transposed> found;
  function.walk([&](linalg::LinalgOp op) {
    if (std::optional<Transposed> transposed = match(op))
      found.push_back(*transposed);
  });
  SmallVector<Value> results;
  for (const Transposed &each : found) {
    linalg::LinalgOp op = each.op;
    results.push_back(resultOf(each));
    OpBuilder builder(op);
    SmallVector<int64_t> first{0, each.rank() + 1}; // the order of dims with channels first
    for (int64_t dim = 0; dim < each.rank(); ++dim)
      first.push_back(dim + 1);
    Value result = transposed(builder, op.getLoc(), results.back(), first);
    AffineMap all = builder.getMultiDimIdentityMap(each.rank() + 2);
    op->getResult(0).replaceAllUsesWith(addStart(builder, op, result, all).getResult(0));
    op->erase();
  }
  return results;
}
