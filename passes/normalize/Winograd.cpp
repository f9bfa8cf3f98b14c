#include "passes/normalize/Winograd.h"

#include "passes/graph/ConstantOperand.h"
#include "passes/graph/Contraction.h"
#include "passes/graph/Form.h"
#include "passes/normalize/AccumulatorInit.h"
#include "passes/normalize/GenericBuilder.h"
#include "passes/normalize/ReshapedTo.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tilewright;

namespace {
constexpr int64_t kWindow = 3, kResults = 2, kPoints = kResults + kWindow - 1;

using Matrix = std::vector<std::vector<float>>;
/// The sums along one dim: four of four points, four of three weights, and two of four products.
const Matrix kOfPoints = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}};
const Matrix kOfWeights = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
const Matrix kOfProducts = {{1, 1, 1, 0}, {0, 1, -1, -1}};

/// Returns the sums along two dims, each of which is one dim of the matrix, in row-major order.
Matrix alongBoth(const Matrix &one) {
  Matrix both;
  for (const std::vector<float> &outer : one)
    for (const std::vector<float> &inner : one) {
      std::vector<float> &row = both.emplace_back();
      for (float first : outer)
        for (float second : inner)
          row.push_back(first * second);
    }
  return both;
}

bool areAll(ArrayRef<int64_t> values, int64_t value) {
  return llvm::all_of(values, [&](int64_t each) { return each == value; });
}

/// Rewrites a convolution.
class Rewriter {
public:
  explicit Rewriter(linalg::LinalgOp op)
      : op(op), dims(*linalg::inferConvolutionDims(op)), sizes(op.getStaticLoopRanges()), make(op),
        builder(make.builder), loc(op.getLoc()), element(getElementTypeOrSelf(op->getResult(0))) {}

  WinogradConvolution rewrite() {
    int64_t channels = sizes[dims.inputChannel[0]], filters = sizes[dims.outputChannel[0]];
    SmallVector<int64_t> places = tiles(); // batch and tiles
    int64_t count = llvm::product_of(places);
    Value points = sumsOfPoints(places, channels);
    Value multiplied = products(reshapedTo(builder, loc, points, {kPoints * kPoints, count, channels}),
                                sumsOfWeights(channels, filters), count, channels, filters);
    SmallVector<int64_t> shape{kPoints * kPoints};
    llvm::append_range(shape, places);
    shape.push_back(filters);
    Value own = image(results(reshapedTo(builder, loc, multiplied, shape), places, filters), filters);
    return {arranged(own), own};
  }

private:
  int64_t batches() const { return dims.batch.size(); }
  int64_t tilesAlong(unsigned dim) const { return llvm::divideCeil(sizes[dims.outputImage[dim]], kResults); }

  /// Returns the sizes of the batch dims, and how many tiles there are along both dims of the image.
  SmallVector<int64_t> tiles() const {
    SmallVector<int64_t> shape = llvm::map_to_vector(dims.batch, [&](unsigned dim) { return sizes[dim]; });
    shape.append({tilesAlong(0), tilesAlong(1)});
    return shape;
  }

  AffineMap mapOf(unsigned operand) { return op.getIndexingMapsArray()[operand]; }
  AffineExpr dim(int64_t position) { return builder.getAffineDimExpr(position); }
  AffineMap mapTo(int64_t loops, ArrayRef<AffineExpr> index) {
    return AffineMap::get(loops, 0, index, builder.getContext());
  }
  RankedTensorType typeOf(ArrayRef<int64_t> shape) const { return RankedTensorType::get(shape, element); }

  /// Returns the image with further zeros behind it, which tiles that reach over the last result read.
  Value filledUp() {
    Value image = op->getOperand(0);
    auto type = cast<RankedTensorType>(image.getType());
    SmallVector<int64_t> more(type.getRank(), 0);
    for (auto [position, index] : llvm::enumerate(mapOf(0).getResults()))
      for (unsigned along : {0u, 1u})
        if (index.isFunctionOfDim(dims.outputImage[along]))
          more[position] = kResults * tilesAlong(along) + kWindow - 1 - type.getDimSize(position);
    if (areAll(more, 0))
      return image;
    SmallVector<int64_t> low(type.getRank(), 0), high(more);
    auto pad = image.getDefiningOp<tensor::PadOp>(); // one pad in place of two
    Value filling = pad ? pad.getConstantPaddingValue() : Value();
    if (filling && matchPattern(filling, m_AnyZeroFloat()) && pad.getLow().empty() && pad.getHigh().empty()) {
      image = pad.getSource();
      low.assign(pad.getStaticLow().begin(), pad.getStaticLow().end());
      for (auto [size, before] : llvm::zip_equal(high, pad.getStaticHigh()))
        size += before;
    }
    SmallVector<int64_t> shape(type.getShape());
    for (auto [size, behind] : llvm::zip_equal(shape, more))
      size += behind;
    Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(element));
    return tensor::PadOp::create(builder, loc, typeOf(shape), image, getAsIndexOpFoldResult(builder.getContext(), low),
                                 getAsIndexOpFoldResult(builder.getContext(), high), zero);
  }

  /// Returns the points of all tiles: batch, tiles, points of a tile as one dim, channels.
  Value tilesOfImage(ArrayRef<int64_t> places, int64_t channels) {
    int64_t rank = places.size(), loops = rank + 3, first = batches();
    SmallVector<AffineExpr> read(op.getNumLoops(), builder.getAffineConstantExpr(0));
    for (auto [position, loop] : llvm::enumerate(dims.batch))
      read[loop] = dim(position);
    for (unsigned along : {0u, 1u})
      read[dims.outputImage[along]] = dim(first + along) * kResults + dim(rank + along);
    read[dims.inputChannel[0]] = dim(rank + 2);
    SmallVector<int64_t> shape(places);
    shape.append({kPoints, kPoints, channels});
    Value copied = make.elementwise(typeOf(shape), filledUp(), mapOf(0).replaceDimsAndSymbols(read, {}, loops, 0),
                                    [](OpBuilder &, ValueRange elements) { return elements[0]; });
    shape.assign(places.begin(), places.end());
    shape.append({kPoints * kPoints, channels});
    return reshapedTo(builder, loc, copied, shape);
  }

  /// Returns the sums of points: sums, batch, tiles, channels.
  Value sumsOfPoints(ArrayRef<int64_t> places, int64_t channels) {
    int64_t rank = places.size(), k = rank + 2; // loops: sums, batch, tiles, channels, points
    SmallVector<int64_t> shape{kPoints * kPoints};
    llvm::append_range(shape, places);
    shape.push_back(channels);
    SmallVector<AffineExpr> read = llvm::map_to_vector(llvm::seq<int64_t>(1, rank + 1), [&](int64_t d) { return dim(d); });
    read.append({dim(k), dim(rank + 1)});
    return contraction(shape, constant(alongBoth(kOfPoints)), mapTo(k + 1, {dim(0), dim(k)}),
                       tilesOfImage(places, channels), mapTo(k + 1, read));
  }

  /// Returns the sums of weights: sums, channels, filters.
  Value sumsOfWeights(int64_t channels, int64_t filters) {
    unsigned order[] = {dims.filterLoop[0], dims.filterLoop[1], dims.inputChannel[0], dims.outputChannel[0]};
    AffineMap own = mapOf(1);
    SmallVector<int64_t> from = llvm::map_to_vector(order, [&](unsigned loop) -> int64_t {
      return llvm::find(own.getResults(), dim(loop)) - own.getResults().begin();
    });
    Value weights = op->getOperand(1);
    Value into = tensor::EmptyOp::create(builder, loc, {kWindow, kWindow, channels, filters}, element);
    Value moved = linalg::TransposeOp::create(builder, loc, weights, into, from)->getResult(0);
    moved = reshapedTo(builder, loc, moved, {kWindow * kWindow, channels, filters});
    return contraction({kPoints * kPoints, channels, filters}, constant(alongBoth(kOfWeights)),
                       mapTo(4, {dim(0), dim(3)}), moved, mapTo(4, {dim(3), dim(1), dim(2)}));
  }

  /// Returns the products of the sums: sums, batch and tiles, filters.
  Value products(Value points, Value weights, int64_t count, int64_t channels, int64_t filters) {
    Value result = contraction({kPoints * kPoints, count, filters}, points, mapTo(4, {dim(0), dim(1), dim(3)}), weights,
                               mapTo(4, {dim(0), dim(3), dim(2)}));
    setForm(result.getDefiningOp(), tile::Form::winograd);
    return result;
  }

  /// Returns the results of all tiles: batch, tiles, results of a tile as one dim, filters.
  Value results(Value products, ArrayRef<int64_t> places, int64_t filters) {
    int64_t rank = places.size(), k = rank + 2; // loops: batch, tiles, results of a tile, filters, sums
    SmallVector<int64_t> shape(places);
    shape.append({kResults * kResults, filters});
    SmallVector<AffineExpr> read{dim(k)};
    for (int64_t place = 0; place < rank; ++place)
      read.push_back(dim(place));
    read.push_back(dim(rank + 1));
    return contraction(shape, constant(alongBoth(kOfProducts)), mapTo(k + 1, {dim(rank), dim(k)}), products,
                       mapTo(k + 1, read));
  }

  /// Puts the results of tiles side by side: batch, points of the image, filters.
  Value image(Value results, int64_t filters) {
    int64_t first = batches(), rank = first + 5;
    SmallVector<int64_t> ofTiles = tiles(), shape(ArrayRef(ofTiles).take_front(first)), whole(shape), cut(shape);
    ofTiles.append({kResults, kResults, filters});
    Value split = reshapedTo(builder, loc, results, ofTiles);
    SmallVector<AffineExpr> read = llvm::map_to_vector(llvm::seq<int64_t>(0, first), [&](int64_t d) { return dim(d); });
    read.append({dim(first), dim(first + 2), dim(first + 1), dim(first + 3), dim(first + 4)});
    for (unsigned along : {0u, 1u}) {
      shape.append({tilesAlong(along), kResults});
      whole.push_back(tilesAlong(along) * kResults);
      cut.push_back(sizes[dims.outputImage[along]]);
    }
    for (SmallVector<int64_t> *each : {&shape, &whole, &cut})
      each->push_back(filters);
    Value placed = make.elementwise(typeOf(shape), split, mapTo(rank, read),
                                    [](OpBuilder &, ValueRange elements) { return elements[0]; });
    Value joined = reshapedTo(builder, loc, placed, whole);
    if (whole == cut)
      return joined;
    SmallVector<int64_t> zeros(cut.size(), 0), ones(cut.size(), 1);
    auto of = [&](ArrayRef<int64_t> values) { return getAsIndexOpFoldResult(builder.getContext(), values); };
    return tensor::ExtractSliceOp::create(builder, loc, joined, of(zeros), of(cut), of(ones));
  }

  /// Returns the result in the layout of the convolution's, with the convolution's start added.
  Value arranged(Value own) {
    SmallVector<unsigned> order(ArrayRef<unsigned>(dims.batch));
    llvm::append_range(order, dims.outputImage);
    order.push_back(dims.outputChannel[0]);
    AffineMap result = mapOf(2);
    SmallVector<AffineExpr> read = llvm::map_to_vector(order, [&](unsigned loop) {
      return dim(llvm::find(result.getResults(), dim(loop)) - result.getResults().begin());
    });
    return addStart(builder, op, own, mapTo(order.size(), read)).getResult(0);
  }

  Value constant(const Matrix &matrix) {
    SmallVector<float> elements;
    for (const std::vector<float> &row : matrix)
      llvm::append_range(elements, row);
    auto type = typeOf({static_cast<int64_t>(matrix.size()), static_cast<int64_t>(matrix.front().size())});
    return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, ArrayRef<float>(elements)));
  }

  /// Sums products over one more loop than the result has dims.
  Value contraction(ArrayRef<int64_t> shape, Value lhs, AffineMap inLhs, Value rhs, AffineMap inRhs) {
    auto add = [&](OpBuilder &at, Value total, Value more) -> Value {
      return arith::AddFOp::create(at, loc, total, more);
    };
    return make.reduce(typeOf(shape), {lhs, rhs}, {inLhs, inRhs}, builder.getFloatAttr(element, 0), add,
                       [&](OpBuilder &at, ValueRange elements) -> Value {
                         return arith::MulFOp::create(at, loc, elements[0], elements[1]);
                       });
  }

  linalg::LinalgOp op;
  linalg::ConvolutionDimensions dims;
  SmallVector<int64_t> sizes;
  GenericBuilder make;
  OpBuilder &builder;
  Location loc;
  Type element;
};
} // namespace

bool tilewright::isWinogradOffered(linalg::LinalgOp op) {
  if (!linalg::isaConvolutionOpInterface(op) || op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1 ||
      !op.hasPureTensorSemantics() || op.hasDynamicShape() || !op.getBlock()->getOps<linalg::IndexOp>().empty())
    return false;
  FailureOr<linalg::ConvolutionDimensions> dims = linalg::inferConvolutionDims(op);
  Block &body = *op.getBlock();
  if (failed(dims) || dims->outputImage.size() != 2 || dims->inputChannel.size() != 1 ||
      dims->outputChannel.size() != 1 || !dims->depth.empty() || !areAll(dims->strides, 1) ||
      !areAll(dims->dilations, 1) || !matchSumOfProducts(body.getTerminator()->getOperand(0), body.getArgument(2)))
    return false;
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  bool isF32 = llvm::all_of(op->getOperandTypes(), [](Type type) { return getElementTypeOrSelf(type).isF32(); });
  Value weights = op->getOperand(1);
  return isF32 && llvm::all_of(dims->filterLoop, [&](unsigned loop) { return sizes[loop] == kWindow; }) &&
         op.getNumLoops() == dims->batch.size() + 6 &&
         op.getIndexingMapsArray()[1].isProjectedPermutation() &&
         op.getIndexingMapsArray()[2].isProjectedPermutation() &&
         (isMadeOfParameters(weights) || weights.getDefiningOp<arith::ConstantOp>());
}

WinogradConvolution tilewright::rewriteAsWinograd(linalg::LinalgOp op) { return Rewriter(op).rewrite(); }
