#include "passes/normalize/TransposedConvolution.h"

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
/// A convolution of channels first whose windows do not overlap.
struct Transposed {
  linalg::LinalgOp op;
  Value image;   ///< without the zeros: batch, channels, points
  Value weights; ///< not flipped: channels, filters, points of a window
  int64_t rank;  ///< dims of a window

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
  Transposed found{op, spread.getSource(), weights, static_cast<int64_t>(op.getNumLoops() - 3) / 2};
  ArrayRef<int64_t> image = found.imageShape(), whole = spread.getDestType().getShape();
  ArrayRef<int64_t> offsets = spread.getStaticOffsets(), strides = spread.getStaticStrides();
  if (image.size() != whole.size() || image[0] != whole[0] || image[1] != whole[1])
    return std::nullopt;
  for (int64_t dim = 2; dim < found.rank + 2; ++dim) {
    int64_t window = found.weightShape()[dim];
    if (offsets[dim] != window - 1 || strides[dim] != window ||
        whole[dim] != (image[dim] - 1) * window + 1 + 2 * (window - 1))
      return std::nullopt;
  }
  return found;
}

Value transposed(OpBuilder &builder, Location loc, Value tensor, ArrayRef<int64_t> order) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape = llvm::map_to_vector(order, [&](int64_t dim) { return type.getDimSize(dim); });
  Value into = tensor::EmptyOp::create(builder, loc, shape, type.getElementType());
  return linalg::TransposeOp::create(builder, loc, tensor, into, order)->getResult(0);
}

/// Convolves an image with windows of one point; channels are last in the image, and filters in the weights.
Value convolved(OpBuilder &builder, Location loc, Value image, Value weights, Value start, int64_t rank) {
  Type type = start.getType();
  if (rank == 1)
    return linalg::Conv1DNwcWcfOp::create(builder, loc, type, ValueRange{image, weights}, start).getResult(0);
  if (rank == 2)
    return linalg::Conv2DNhwcHwcfOp::create(builder, loc, type, ValueRange{image, weights}, start).getResult(0);
  return linalg::Conv3DNdhwcDhwcfOp::create(builder, loc, type, ValueRange{image, weights}, start).getResult(0);
}

/// Returns the result, channels last, without the convolution's start.
Value resultOf(const Transposed &what) {
  linalg::LinalgOp op = what.op;
  OpBuilder builder(op);
  Location loc = op.getLoc();
  int64_t rank = what.rank, channels = what.weightShape()[0], filters = what.weightShape()[1];
  ArrayRef<int64_t> window = what.weightShape().drop_front(2), image = what.imageShape().drop_front(2);
  SmallVector<int64_t> last{0}; // the order of dims with channels last
  for (int64_t dim = 0; dim < rank; ++dim)
    last.push_back(dim + 2);
  last.push_back(1);

  int64_t all = llvm::product_of(window) * filters;
  SmallVector<int64_t> kernel(rank, 1), sums{what.imageShape()[0]};
  kernel.append({channels, all});
  sums.append(image.begin(), image.end());
  sums.push_back(all);
  Value matrix = reshapedTo(builder, loc, transposed(builder, loc, what.weights, last), {channels, all});
  Value start = zeros(builder, loc, sums, getElementTypeOrSelf(op->getResult(0)));
  Value points = convolved(builder, loc, transposed(builder, loc, what.image, last),
                           reshapedTo(builder, loc, matrix, kernel), start, rank);

  // Batch, points, points of a window, filters: each point of a window goes beside its point of the image.
  SmallVector<int64_t> split{sums[0]}, order{0}, shape{sums[0]};
  split.append(image.begin(), image.end());
  split.append(window.begin(), window.end());
  split.push_back(filters);
  for (int64_t dim = 0; dim < rank; ++dim) {
    order.append({1 + dim, 1 + rank + dim});
    shape.push_back(image[dim] * window[dim]);
  }
  order.push_back(1 + 2 * rank);
  shape.push_back(filters);
  return reshapedTo(builder, loc, transposed(builder, loc, reshapedTo(builder, loc, points, split), order), shape);
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
    SmallVector<int64_t> first{0, each.rank + 1}; // the order of dims with channels first
    for (int64_t dim = 0; dim < each.rank; ++dim)
      first.push_back(dim + 1);
    Value result = transposed(builder, op.getLoc(), results.back(), first);
    AffineMap all = builder.getMultiDimIdentityMap(each.rank + 2);
    op->getResult(0).replaceAllUsesWith(addStart(builder, op, result, all).getResult(0));
    op->erase();
  }
  return results;
}
