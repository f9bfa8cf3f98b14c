#include "passes/normalize/Winograd.h"

#include "dialects/tile/TileAttributeNames.h"
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

/// Rewrites a convolution. Its tiles lie along the batch dims, dims for lines of tiles, and one for the tiles of a
/// line; sums lie in front of those for which they are stored together.
class Rewriter {
public:
  Rewriter(linalg::LinalgOp op, int64_t lines)
      : op(op), dims(*linalg::inferConvolutionDims(op)), sizes(op.getStaticLoopRanges()), make(op),
        builder(make.builder), loc(op.getLoc()), element(getElementTypeOrSelf(op->getResult(0))),
        channels(sizes[dims.inputChannel[0]]), filters(sizes[dims.outputChannel[0]]) {
    places = llvm::map_to_vector(dims.batch, [&](unsigned dim) { return sizes[dim]; });
    bool areAllTogether = lines == llvm::product_of(places) * tilesAlong(0);
    if (!areAllTogether)
      places.push_back(tilesAlong(0) / lines);
    apart = areAllTogether ? 0 : places.size();
    places.append({areAllTogether ? tilesAlong(0) : lines, tilesAlong(1)});
  }

  WinogradConvolution rewrite() {
    Value own = image(results(products(sumsOfPoints(), sumsOfWeights())));
    return {arranged(own), own};
  }

private:
  int64_t batches() const { return dims.batch.size(); }
  int64_t rank() const { return places.size(); }
  int64_t tilesAlong(unsigned dim) const { return llvm::divideCeil(sizes[dims.outputImage[dim]], kResults); }
  /// Returns the loop over the window along a dim of the image: both are summed in one index.
  unsigned filterLoopOf(unsigned along) {
    auto isIndex = [&](AffineExpr index) { return index.isFunctionOfDim(dims.outputImage[along]); };
    AffineExpr index = *llvm::find_if(mapOf(0).getResults(), isIndex);
    return *llvm::find_if(dims.filterLoop, [&](unsigned loop) { return index.isFunctionOfDim(loop); });
  }
  AffineMap mapOf(unsigned operand) { return op.getIndexingMapsArray()[operand]; }
  AffineExpr dim(int64_t position) { return builder.getAffineDimExpr(position); }
  SmallVector<AffineExpr> dimsBelow(int64_t end) {
    return llvm::map_to_vector(llvm::seq<int64_t>(0, end), [&](int64_t position) { return dim(position); });
  }
  AffineMap mapTo(int64_t loops, ArrayRef<AffineExpr> index) {
    return AffineMap::get(loops, 0, index, builder.getContext());
  }
  RankedTensorType typeOf(ArrayRef<int64_t> shape) const { return RankedTensorType::get(shape, element); }
  Value reshaped(Value value, ArrayRef<int64_t> shape) { return reshapedTo(builder, loc, value, shape); }

  /// Returns the sizes of the dims of places, and then `more`.
  SmallVector<int64_t> placesAnd(ArrayRef<int64_t> more) const {
    SmallVector<int64_t> shape(places);
    llvm::append_range(shape, more);
    return shape;
  }

  /// Returns the shape of sums: places, with the sums in front of those that lie together, and then `last`.
  SmallVector<int64_t> shapeOfSums(int64_t last) const {
    SmallVector<int64_t> shape(places);
    shape.insert(shape.begin() + apart, kPoints * kPoints);
    shape.push_back(last);
    return shape;
  }

  /// Returns the line of the image, and the point of a line, at which each tile begins.
  std::array<AffineExpr, 2> beginning() {
    AffineExpr line = dim(rank() - 2);
    if (apart > 0)
      line = dim(rank() - 3) * places[rank() - 2] + line;
    return {line * kResults, dim(rank() - 1) * kResults};
  }

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

  /// Returns the image with its channels last, and changes the map of its dims accordingly. A tile is read as whole
  /// vectors of channels, and each point by four tiles, so it pays off to store such an image.
  Value withChannelsLast(Value image, AffineMap &index) {
    auto ofChannels = [&](int64_t position) { return index.getResult(position).isFunctionOfDim(dims.inputChannel[0]); };
    SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, index.getNumResults()));
    llvm::stable_sort(order, [&](int64_t a, int64_t b) { return !ofChannels(a) && ofChannels(b); });
    if (llvm::is_sorted(order))
      return image;
    SmallVector<AffineExpr> moved = llvm::map_to_vector(order, [&](int64_t from) { return index.getResult(from); });
    index = AffineMap::get(index.getNumDims(), 0, moved, builder.getContext());
    auto shape = cast<RankedTensorType>(image.getType()).getShape();
    Value into = tensor::EmptyOp::create(
        builder, loc, llvm::map_to_vector(order, [&](int64_t from) { return shape[from]; }), element);
    return linalg::TransposeOp::create(builder, loc, image, into, order)->getResult(0);
  }

  /// Returns the points of all tiles: places, points of a tile as one dim, channels.
  Value tilesOfImage() {
    SmallVector<AffineExpr> read(op.getNumLoops(), builder.getAffineConstantExpr(0));
    for (auto [position, loop] : llvm::enumerate(dims.batch))
      read[loop] = dim(position);
    for (auto [along, first] : llvm::enumerate(beginning()))
      read[dims.outputImage[along]] = first + dim(rank() + along);
    read[dims.inputChannel[0]] = dim(rank() + 2);
    AffineMap index = mapOf(0);
    Value image = withChannelsLast(filledUp(), index);
    Value copied = make.elementwise(typeOf(placesAnd({kPoints, kPoints, channels})), image,
                                    index.replaceDimsAndSymbols(read, {}, rank() + 3, 0),
                                    [](OpBuilder &, ValueRange elements) { return elements[0]; });
    return reshaped(copied, placesAnd({kPoints * kPoints, channels}));
  }

  /// Returns the sums of points: places and sums, channels.
  Value sumsOfPoints() {
    int64_t k = rank() + 2;
    SmallVector<AffineExpr> read;
    for (int64_t place = 0; place < rank(); ++place)
      read.push_back(dim(place < apart ? place : place + 1));
    read.append({dim(k), dim(k - 1)});
    return ofMatrix(alongBoth(kOfPoints), shapeOfSums(channels), apart, tilesOfImage(), mapTo(k + 1, read));
  }

  /// Returns the sums of weights: sums, channels, filters.
  Value sumsOfWeights() {
    unsigned order[] = {filterLoopOf(0), filterLoopOf(1), dims.inputChannel[0], dims.outputChannel[0]};
    AffineMap own = mapOf(1);
    SmallVector<int64_t> from = llvm::map_to_vector(order, [&](unsigned loop) -> int64_t {
      return llvm::find(own.getResults(), dim(loop)) - own.getResults().begin();
    });
    Value into = tensor::EmptyOp::create(builder, loc, {kWindow, kWindow, channels, filters}, element);
    Value moved = linalg::TransposeOp::create(builder, loc, op->getOperand(1), into, from)->getResult(0);
    return ofMatrix(alongBoth(kOfWeights), {kPoints * kPoints, channels, filters}, 0,
                    reshaped(moved, {kWindow * kWindow, channels, filters}), mapTo(4, {dim(3), dim(1), dim(2)}));
  }

  /// Returns the products of the sums: places and sums, filters.
  Value products(Value points, Value weights) {
    SmallVector<int64_t> shape;
    if (apart > 0)
      shape.push_back(llvm::product_of(ArrayRef(places).take_front(apart)));
    shape.append({kPoints * kPoints, llvm::product_of(ArrayRef(places).drop_front(apart)), channels});
    Value ofPoints = reshaped(points, shape);
    shape.back() = filters;
    int64_t k = shape.size(); // loops: places that are apart, sums, tiles, filters, channels
    SmallVector<AffineExpr> read = dimsBelow(k - 1);
    read.push_back(dim(k));
    AffineMap ofWeights = mapTo(k + 1, {dim(k - 3), dim(k), dim(k - 1)});
    Value result = contraction(shape, ofPoints, mapTo(k + 1, read), weights, ofWeights);
    setForm(result.getDefiningOp(), tile::Form::winograd);
    return reshaped(result, shapeOfSums(filters));
  }

  /// Returns the results of all tiles: places, results of a tile as one dim, filters.
  Value results(Value products) {
    int64_t k = rank() + 2; // loops: places, results of a tile, filters, sums
    SmallVector<AffineExpr> read = dimsBelow(rank());
    read.insert(read.begin() + apart, dim(k));
    read.push_back(dim(k - 1));
    return ofMatrix(alongBoth(kOfProducts), placesAnd({kResults * kResults, filters}), rank(), products,
                    mapTo(k + 1, read));
  }

  /// Puts the results of tiles side by side: batch, points of the image, filters.
  Value image(Value results) {
    int64_t last = rank() - 1; // dim of the tiles of a line
    Value split = reshaped(results, placesAnd({kResults, kResults, filters}));
    SmallVector<int64_t> shape(ArrayRef(places).drop_back());
    shape.append({kResults, places.back(), kResults, filters});
    SmallVector<AffineExpr> read = dimsBelow(last);
    read.append({dim(last + 1), dim(last), dim(last + 2), dim(last + 3)});
    Value placed = make.elementwise(typeOf(shape), split, mapTo(last + 4, read),
                                    [](OpBuilder &, ValueRange elements) { return elements[0]; });
    SmallVector<int64_t> whole(ArrayRef(places).take_front(batches())), cut(whole);
    for (unsigned along : {0u, 1u}) {
      whole.push_back(tilesAlong(along) * kResults);
      cut.push_back(sizes[dims.outputImage[along]]);
    }
    whole.push_back(filters);
    cut.push_back(filters);
    Value joined = reshaped(placed, whole);
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

  /// Multiplies a constant matrix, whose rows are dim `row` of the result, with `rhs`.
  Value ofMatrix(const Matrix &matrix, ArrayRef<int64_t> shape, int64_t row, Value rhs, AffineMap inRhs) {
    SmallVector<float> elements;
    for (const std::vector<float> &each : matrix)
      llvm::append_range(elements, each);
    auto type = typeOf({static_cast<int64_t>(matrix.size()), static_cast<int64_t>(matrix.front().size())});
    auto factors = DenseElementsAttr::get(type, ArrayRef<float>(elements));
    Value lhs = arith::ConstantOp::create(builder, loc, factors);
    int64_t k = shape.size();
    Value result = contraction(shape, lhs, mapTo(k + 1, {dim(row), dim(k)}), rhs, inRhs);
    result.getDefiningOp()->setAttr(kFactorsAttr, factors);
    return result;
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
  int64_t channels, filters;
  SmallVector<int64_t> places; ///< sizes of the dims along which tiles lie
  int64_t apart;               ///< the first dims of places, whose sums are stored apart
};
} // namespace

bool tilewright::isWinogradOffered(linalg::LinalgOp op) {
  if (!linalg::isaConvolutionOpInterface(op) || op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1 ||
      !op.hasPureTensorSemantics() || op.hasDynamicShape() || !op.getBlock()->getOps<linalg::IndexOp>().empty())
    return false;
  FailureOr<linalg::ConvolutionDimensions> dims = linalg::inferConvolutionDims(op);
  if (failed(dims) || dims->outputImage.size() != 2 || dims->inputChannel.size() != 1 ||
      dims->outputChannel.size() != 1 || !dims->depth.empty() || !areAll(dims->strides, 1) ||
      !areAll(dims->dilations, 1) || !addsPlainProducts(*op.getBlock()))
    return false;
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  bool isF32 = llvm::all_of(op->getOperandTypes(), [](Type type) { return getElementTypeOrSelf(type).isF32(); });
  Value weights = op->getOperand(1);
  return isF32 && !llvm::is_contained(sizes, 0) && llvm::all_of(dims->filterLoop, [&](unsigned loop) { return sizes[loop] == kWindow; }) &&
         op.getNumLoops() == dims->batch.size() + 6 &&
         op.getIndexingMapsArray()[1].isProjectedPermutation() &&
         op.getIndexingMapsArray()[2].isProjectedPermutation() &&
         (isMadeOfParameters(weights) || weights.getDefiningOp<arith::ConstantOp>());
}

SmallVector<int64_t> tilewright::winogradLines(linalg::LinalgOp op) {
  linalg::ConvolutionDimensions dims = *linalg::inferConvolutionDims(op);
  SmallVector<int64_t> sizes = op.getStaticLoopRanges(), found;
  int64_t lines = llvm::divideCeil(sizes[dims.outputImage[0]], kResults), all = lines;
  for (unsigned dim : dims.batch)
    all *= sizes[dim];
  for (int64_t together = 1; together <= lines; ++together)
    if (lines % together == 0)
      found.push_back(together);
  if (all > lines)
    found.push_back(all);
  return found;
}

void tilewright::requestWinograd(Operation *convolution, int64_t lines) {
  setForm(convolution, tile::Form::winograd);
  convolution->setAttr(kTileLinesAttr, Builder(convolution).getI64IntegerAttr(lines));
}

void tilewright::declineWinograd(Operation *convolution) {
  setForm(convolution, tile::Form::channelsLast);
  convolution->removeAttr(kTileLinesAttr);
}

WinogradConvolution tilewright::rewriteAsWinograd(linalg::LinalgOp op, int64_t lines) {
  return Rewriter(op, lines).rewrite();
}
