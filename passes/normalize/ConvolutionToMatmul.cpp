// Turns convolutions into matmuls. The windows of the image become the rows of lhs (im2col). That is only movement: the
// planner lets the contraction read the image through it, or keeps the matrix in a workgroup's memory. The weights
// already are the other matrix. A convolution thereby gets everything that a matmul has: packed weights, a micro kernel
// and epilogues in the same kernel. Two kinds of ops become an elementwise op and a reduction instead, as in a softmax
// or a norm: those that only add up or compare windows (depthwise convolutions, pools), and contractions that have
// nothing or too little along the vector lanes (a row by a column, a matrix by a vector or two).
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/graph/ConstantOperand.h"
#include "passes/graph/Contraction.h"
#include "passes/graph/Eligibility.h"
#include "passes/graph/Form.h"
#include "passes/normalize/AccumulatorInit.h"
#include "passes/normalize/CollapseReaders.h"
#include "passes/normalize/FillLanes.h"
#include "passes/normalize/ImageLayout.h"
#include "passes/normalize/KeepLayout.h"
#include "passes/normalize/LinesOfImages.h"
#include "passes/normalize/RepeatedExtracts.h"
#include "passes/normalize/ReshapedTo.h"
#include "passes/normalize/TransposedConvolution.h"
#include "passes/normalize/Winograd.h"
#include "passes/normalize/WindowContraction.h"
#include "passes/target/TargetOrError.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_CONVOLUTIONTOMATMUL
#include "passes/Passes.h.inc"

namespace {
/// A convolution and the roles of its loops.
struct Convolution {
  linalg::LinalgOp op;
  SmallVector<unsigned> points; ///< M: batch and image dims of the result
  SmallVector<unsigned> groups; ///< batch of contractions: the groups of channels, if there are any
  SmallVector<unsigned> window; ///< K: input channel and window dims, in the order of the weights, or channels last
  unsigned channel;             ///< N: channel of the result, within its group
  bool channelFirst; ///< true if `channel` is the first dim of the weights behind the groups, false if it is the last
};

/// A reduction that no register block computes.
struct PlainReduction {
  linalg::LinalgOp op;
  Operation *combiner; ///< the body's op on the accumulator and `value`
  Value value;
};

AffineMap mapOf(linalg::LinalgOp op, unsigned operand) { return op.getIndexingMapsArray()[operand]; }

/// Returns the dims of a map whose results are distinct dims, or nothing for other maps.
std::optional<SmallVector<unsigned>> dimsOf(AffineMap map) {
  if (!map.isProjectedPermutation())
    return std::nullopt;
  return llvm::map_to_vector(map.getResults(),
                             [](AffineExpr index) { return cast<AffineDimExpr>(index).getPosition(); });
}

bool isStatic(linalg::LinalgOp op) {
  return op.getNumDpsInputs() == 2 && op.getNumDpsInits() == 1 && op.hasPureTensorSemantics() &&
         !op.hasDynamicShape() && !llvm::is_contained(op.getStaticLoopRanges(), 0) &&
         op.getBlock()->getOps<linalg::IndexOp>().empty(); // they name loops, which are reordered
}

std::optional<Convolution> matchConvolution(linalg::LinalgOp op, const CommonCosts &costs) {
  FailureOr<linalg::ConvolutionDimensions> dims = linalg::inferConvolutionDims(op);
  std::optional<SmallVector<unsigned>> weights = dimsOf(mapOf(op, 1)), result = dimsOf(mapOf(op, 2));
  if (failed(dims) || !weights || !result || dims->outputChannel.size() != 1 || dims->inputChannel.empty())
    return std::nullopt; // a depthwise convolution has nothing to contract
  SmallVector<unsigned> groups(ArrayRef<unsigned>(dims->depth));
  if (!groups.empty() && (op.getStaticLoopRanges()[dims->outputChannel[0]] < costs.filtersOfGroup ||
                          !llvm::equal(groups, ArrayRef(*weights).take_front(groups.size()))))
    return std::nullopt;
  weights->erase(weights->begin(), weights->begin() + groups.size());
  Block &body = *op.getBlock();
  // Quantized values are in i32 until tile-lower-quantized-matmul finds their bytes.
  bool isWide = getElementTypeOrSelf(op->getResult(0)).isInteger(32);
  if (!isWide && !matchSumOfProducts(body.getTerminator()->getOperand(0), body.getArgument(2)))
    return std::nullopt;
  Convolution found{op, {}, groups, {}, dims->outputChannel[0], weights->front() == dims->outputChannel[0]};
  if (!found.channelFirst && weights->back() != found.channel)
    return std::nullopt;
  found.points.append(dims->batch.begin(), dims->batch.end());
  found.points.append(dims->outputImage.begin(), dims->outputImage.end());
  for (unsigned dim : *weights)
    if (dim != found.channel)
      found.window.push_back(dim);
  size_t ofResult = found.points.size() + groups.size() + 1;
  if (ofResult != result->size() || ofResult + found.window.size() != op.getNumLoops())
    return std::nullopt;
  return found;
}

/// Puts the channels behind the points of the window, if the image has them innermost and the weights can be stored in
/// that order: K then runs along lines of the image. Only sums of 32 bits may take another order in all modes.
void takeChannelsLast(Convolution &convolution, const CommonCosts &costs) {
  linalg::LinalgOp op = convolution.op;
  FailureOr<linalg::ConvolutionDimensions> dims = linalg::inferConvolutionDims(op);
  Value weights = op->getOperand(1);
  bool isStored = isMadeOfParameters(weights) || weights.getDefiningOp<arith::ConstantOp>();
  if (!isStored || getElementTypeOrSelf(op->getResult(0)).getIntOrFloatBitWidth() < 32 ||
      op.getStaticLoopRanges()[dims->inputChannel.back()] % costs.channelsInLine != 0)
    return;
  std::stable_partition(convolution.window.begin(), convolution.window.end(),
                        [&](unsigned dim) { return llvm::is_contained(dims->filterLoop, dim); });
}

std::optional<PlainReduction> matchPlainReduction(linalg::LinalgOp op) {
  std::optional<SmallVector<unsigned>> result = dimsOf(mapOf(op, 2));
  Block &body = *op.getBlock();
  Operation *combiner = body.getTerminator()->getOperand(0).getDefiningOp();
  Value accumulator = body.getArgument(2);
  if (!result || !combiner || combiner->getNumOperands() != 2 || !accumulator.hasOneUse() ||
      !llvm::is_contained(combiner->getOperands(), accumulator))
    return std::nullopt;
  Value value = combiner->getOperand(combiner->getOperand(0) == accumulator ? 1 : 0);
  return value.getType() == accumulator.getType() ? std::optional(PlainReduction{op, combiner, value}) : std::nullopt;
}

Value emptyTensor(OpBuilder &builder, Location loc, ArrayRef<int64_t> shape, Type element) {
  return tensor::EmptyOp::create(builder, loc, shape, element);
}

/// Returns the map with which `op` reads an input, over its loops in the given order.
AffineMap readInOrder(OpBuilder &builder, linalg::LinalgOp op, unsigned input, ArrayRef<unsigned> order) {
  SmallVector<AffineExpr> exprs(op.getNumLoops(), builder.getAffineConstantExpr(0));
  for (auto [position, dim] : llvm::enumerate(order))
    exprs[dim] = builder.getAffineDimExpr(position);
  return mapOf(op, input).replaceDimsAndSymbols(exprs, {}, order.size(), 0);
}

/// Rewrites a convolution as im2col, a contraction and an addition of the start.
class ConvolutionRewriter {
public:
  ConvolutionRewriter(const Convolution &convolution, const CpuCosts &costs)
      : convolution(convolution), costs(costs), op(convolution.op), builder(op), loc(op.getLoc()),
        sizes(op.getStaticLoopRanges()) {}

  /// Returns the convolution's result. `own` is set to the result of the contraction: points, then channels.
  Value rewrite(Value &own) {
    int64_t k = count(convolution.window), n = sizes[convolution.channel];
    SmallVector<int64_t> rows = rowsOfMatrix(), matrix = sizesOf(convolution.groups), shape = sizesOf(convolution.points);
    llvm::append_range(rows, matrix);
    llvm::append_range(shape, matrix);
    SmallVector<int64_t> image(rows);
    image.push_back(k);
    matrix.append({convolution.channelFirst ? n : k, convolution.channelFirst ? k : n});
    Value result = product(reshaped(windows(), image), reshaped(weights(), matrix), rows, n);
    shape.push_back(n);
    own = reshaped(result, shape);
    return arranged(own);
  }

private:
  /// Returns the M dims: those of the points, or all of them collapsed.
  SmallVector<int64_t> rowsOfMatrix() const {
    if (keepsLines(op, convolution.points.back(), convolution.window.back(), costs))
      return sizesOf(convolution.points);
    return {count(convolution.points)};
  }

  int64_t count(ArrayRef<unsigned> dims) const { return llvm::product_of(sizesOf(dims)); }

  SmallVector<int64_t> sizesOf(ArrayRef<unsigned> dims) const {
    return llvm::map_to_vector(dims, [&](unsigned dim) { return sizes[dim]; });
  }

  Value reshaped(Value value, ArrayRef<int64_t> shape) { return reshapedTo(builder, loc, value, shape); }

  /// Returns the elements of all windows (im2col), over the dims of the points, the groups and then the window.
  Value windows() {
    Value image = op->getOperand(0);
    Type element = cast<RankedTensorType>(image.getType()).getElementType();
    SmallVector<unsigned> order(convolution.points);
    order.append(convolution.groups);
    order.append(convolution.window);
    AffineMap read = readInOrder(builder, op, 0, order);
    SmallVector<utils::IteratorType> loops(order.size(), utils::IteratorType::parallel);
    auto generic = linalg::GenericOp::create(
        builder, loc, TypeRange(RankedTensorType::get(sizesOf(order), element)), image,
        emptyTensor(builder, loc, sizesOf(order), element), {read, builder.getMultiDimIdentityMap(order.size())}, loops,
        [](OpBuilder &body, Location at, ValueRange elements) { linalg::YieldOp::create(body, at, elements[0]); });
    return generic.getResult(0);
  }

  /// Returns the weights with K in the order of the window.
  Value weights() {
    SmallVector<unsigned> own = *dimsOf(mapOf(op, 1)), order(convolution.groups);
    order.append(convolution.window);
    order.insert(convolution.channelFirst ? order.begin() + convolution.groups.size() : order.end(), convolution.channel);
    Value weights = op->getOperand(1);
    if (order == own)
      return weights;
    SmallVector<int64_t> from =
        llvm::map_to_vector(order, [&](unsigned dim) -> int64_t { return llvm::find(own, dim) - own.begin(); });
    Value into = emptyTensor(builder, loc, sizesOf(order), getElementTypeOrSelf(weights));
    return linalg::TransposeOp::create(builder, loc, weights, into, from)->getResult(0);
  }

  /// `rows` are the sizes of the M dims, and of the groups.
  Value product(Value image, Value weights, ArrayRef<int64_t> rows, int64_t n) {
    Type element = cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
    unsigned rank = rows.size();
    AffineMap all = builder.getMultiDimIdentityMap(rank + 2); // M dims, groups, N, K
    SmallVector<AffineExpr> inImage(all.getResults().take_front(rank));
    AffineExpr dimN = all.getResult(rank), dimK = all.getResult(rank + 1);
    inImage.push_back(dimK);
    auto of = [&](ArrayRef<AffineExpr> index) { return AffineMap::get(rank + 2, 0, index, builder.getContext()); };
    SmallVector<AffineExpr> inWeights(all.getResults().slice(rank - convolution.groups.size(), convolution.groups.size()));
    inWeights.append({convolution.channelFirst ? dimN : dimK, convolution.channelFirst ? dimK : dimN});
    AffineMap maps[] = {of(inImage), of(inWeights), all.getMajorSubMap(rank + 1)};
    SmallVector<int64_t> shape(rows);
    shape.push_back(n);
    Value start = zeros(builder, loc, shape, element);
    SmallVector<utils::IteratorType> loops(rank + 1, utils::IteratorType::parallel);
    loops.push_back(utils::IteratorType::reduction);
    auto generic = linalg::GenericOp::create(builder, loc, TypeRange(start.getType()), ValueRange{image, weights},
                                             start, maps, loops);
    IRMapping none;
    op->getRegion(0).cloneInto(&generic.getRegion(), none);
    return generic.getResult(0);
  }

  /// Returns the result in the layout of the convolution's, with the convolution's start added.
  Value arranged(Value value) {
    SmallVector<int64_t> order(convolution.points.begin(), convolution.points.end());
    llvm::append_range(order, convolution.groups);
    order.push_back(convolution.channel);
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    SmallVector<AffineExpr> read(order.size());
    for (auto [position, dim] : llvm::enumerate(*dimsOf(mapOf(op, 2))))
      read[llvm::find(order, dim) - order.begin()] = builder.getAffineDimExpr(position);
    AffineMap resultMap = AffineMap::get(type.getRank(), 0, read, builder.getContext());
    return addStart(builder, op, value, resultMap).getResult(0);
  }

  const Convolution &convolution;
  const CpuCosts &costs;
  linalg::LinalgOp op;
  OpBuilder builder;
  Location loc;
  SmallVector<int64_t> sizes; ///< extents of the convolution's loops
};

/// Computes the values that are reduced as a tensor of their own, over the result's dims and then the reduced ones.
Value elementsOf(OpBuilder &builder, const PlainReduction &reduction, ArrayRef<unsigned> order) {
  linalg::LinalgOp op = reduction.op;
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  SmallVector<int64_t> shape = llvm::map_to_vector(order, [&](unsigned dim) { return sizes[dim]; });
  Block &body = *op.getBlock();
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  SmallVector<BlockArgument> arguments;
  for (unsigned input : {0, 1})
    if (!body.getArgument(input).use_empty()) { // a pool uses only the shape of its window operand
      inputs.push_back(op->getOperand(input));
      maps.push_back(readInOrder(builder, op, input, order));
      arguments.push_back(body.getArgument(input));
    }
  maps.push_back(builder.getMultiDimIdentityMap(order.size()));
  SmallVector<utils::IteratorType> loops(order.size(), utils::IteratorType::parallel);
  Type element = reduction.value.getType();
  Value into = emptyTensor(builder, op.getLoc(), shape, element);
  auto copy = [&](OpBuilder &inside, Location at, ValueRange elements) {
    IRMapping values;
    for (auto [argument, value] : llvm::zip(arguments, elements))
      values.map(argument, value);
    for (Operation &each : body.without_terminator())
      if (&each != reduction.combiner)
        inside.clone(each, values);
    linalg::YieldOp::create(inside, at, values.lookupOrDefault(reduction.value));
  };
  return linalg::GenericOp::create(builder, op.getLoc(), TypeRange(into.getType()), inputs, into, maps, loops, copy)
      .getResult(0);
}

/// Rewrites a reduction as an elementwise op and a reduction of its result.
Value rewriteReduction(const PlainReduction &reduction) {
  linalg::LinalgOp op = reduction.op;
  OpBuilder builder(op);
  Location loc = op.getLoc();
  SmallVector<unsigned> order = *dimsOf(mapOf(op, 2));
  unsigned rank = order.size();
  for (unsigned dim = 0; dim < op.getNumLoops(); ++dim)
    if (!llvm::is_contained(ArrayRef(order).take_front(rank), dim))
      order.push_back(dim);
  Value elements = elementsOf(builder, reduction, order);
  AffineMap all = builder.getMultiDimIdentityMap(order.size());
  // getMajorSubMap() cannot return a map without results, which a row by a column needs.
  AffineMap result = AffineMap::get(order.size(), 0, all.getResults().take_front(rank), builder.getContext());
  SmallVector<utils::IteratorType> loops(order.size(), utils::IteratorType::reduction);
  std::fill_n(loops.begin(), rank, utils::IteratorType::parallel);
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  Value start = op.getDpsInits()[0];
  // Sums start from zero, and the start is added to them. Extrema start from a constant.
  bool sums = isa<arith::AddFOp, arith::AddIOp>(reduction.combiner);
  if (sums)
    start = zeros(builder, loc, type.getShape(), type.getElementType());
  auto combine = [&](OpBuilder &inside, Location at, ValueRange values) {
    IRMapping both;
    both.map(op.getBlock()->getArgument(2), values[1]);
    both.map(reduction.value, values[0]);
    linalg::YieldOp::create(inside, at, inside.clone(*reduction.combiner, both)->getResult(0));
  };
  Value reduced =
      linalg::GenericOp::create(builder, loc, TypeRange(type), elements, start, ArrayRef{all, result}, loops, combine)
          .getResult(0);
  if (!sums)
    return reduced;
  return addStart(builder, op, reduced, builder.getMultiDimIdentityMap(rank)).getResult(0);
}

/// Returns true for convolutions of bytes that have zero points as operands.
bool isQuantized(Operation *op) {
  return isa<linalg::Conv2DNchwFchwQOp, linalg::Conv2DNhwcHwcfQOp, linalg::Conv2DNhwcFhwcQOp,
             linalg::Conv2DNgchwGfchwQOp, linalg::DepthwiseConv2DNhwcHwcQOp, linalg::DepthwiseConv2DNhwcHwcmQOp>(op);
}

/// Returns bytes widened to i32, minus their zero point.
Value minusZeroPoint(OpBuilder &builder, Location loc, Value bytes, Value zeroPoint) {
  auto type = cast<RankedTensorType>(bytes.getType());
  Type wide = builder.getI32Type();
  AffineMap all = builder.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  auto body = [&](OpBuilder &inside, Location at, ValueRange elements) {
    Value number = arith::ExtSIOp::create(inside, at, wide, elements[0]);
    if (!matchPattern(zeroPoint, m_Zero()))
      number = arith::SubIOp::create(inside, at, number, zeroPoint);
    linalg::YieldOp::create(inside, at, number);
  };
  return linalg::GenericOp::create(builder, loc, TypeRange(type.clone(wide)), bytes,
                                   emptyTensor(builder, loc, type.getShape(), wide), ArrayRef{all, all}, loops, body)
      .getResult(0);
}

/// Replaces a convolution with zero points by one of the differences to them.
void subtractZeroPoints(linalg::LinalgOp op) {
  OpBuilder builder(op);
  SmallVector<Value> operands;
  for (unsigned input : {0, 1})
    operands.push_back(minusZeroPoint(builder, op.getLoc(), op->getOperand(input), op->getOperand(2 + input)));
  SmallVector<AffineMap> maps{mapOf(op, 0), mapOf(op, 1), mapOf(op, 4)};
  auto generic =
      linalg::GenericOp::create(builder, op.getLoc(), op->getResultTypes(), operands, op.getDpsInits(), maps,
                                op.getIteratorTypesArray(), [](OpBuilder &body, Location at, ValueRange elements) {
                                  Value term = arith::MulIOp::create(body, at, elements[0], elements[1]);
                                  Value sum = arith::AddIOp::create(body, at, elements[2], term);
                                  linalg::YieldOp::create(body, at, sum);
                                });
  if (Attribute layout = op->getAttr(kFormAttr))
    generic->setAttr(kFormAttr, layout);
  op->replaceAllUsesWith(generic.getResults());
  op->erase();
}

struct ConvolutionToMatmul : impl::ConvolutionToMatmulBase<ConvolutionToMatmul> {
  using ConvolutionToMatmulBase::ConvolutionToMatmulBase;

  void runOnOperation() override {
    if (!target.empty()) {
      FailureOr<Target> known = targetOrError(getOperation(), target);
      if (failed(known))
        return signalPassFailure();
      keepsLayout = known->traits.readsTransposed;
      costs = known->costs;
    }
    if (keepsLayout)
      readRepeatedExtracts(getOperation());
    results = rewriteTransposedConvolutions(getOperation());
    SmallVector<linalg::LinalgOp> found, few, nothing, quantized;
    getOperation().walk([&](linalg::LinalgOp op) {
      bool isKnown = op.hasPureTensorSemantics() && !op.hasDynamicShape();
      if (isKnown && isQuantized(op) && getElementTypeOrSelf(op->getResult(0)).isInteger(32))
        quantized.push_back(op);
    });
    for (linalg::LinalgOp op : quantized)
      subtractZeroPoints(op);
    getOperation().walk([&](linalg::LinalgOp op) {
      if (linalg::isaConvolutionOpInterface(op) && isStatic(op))
        found.push_back(op);
    });
    if (getOperation().getBody().hasOneBlock()) {
      TensorGraph graph = TensorGraph::build(getOperation().getBody().front());
      std::vector<bool> atLoad = computedAtLoad(graph, /*repeatsWeights=*/true);
      for (auto [id, expr] : llvm::enumerate(graph.exprs())) {
        auto op = dyn_cast<linalg::LinalgOp>(expr.op);
        if (!op || !isStatic(op))
          continue;
        if (keepsLayout) {
          if (hasNoColumns(graph, atLoad, id, costs.cpu))
            found.push_back(op);
          continue;
        }
        AlongLanes lanes = whatLiesAlongLanes(graph, atLoad, id, costs.cpu);
        if (lanes != AlongLanes::much)
          (lanes == AlongLanes::few ? few : nothing).push_back(op);
      }
    }
    for (linalg::LinalgOp op : nothing)
      if (std::optional<unsigned> lane = lanesElsewhere(op, costs.cpu)) {
        turnResult(op, *lane);
        ++numRewritten;
      } else {
        found.push_back(op);
      }
    for (linalg::LinalgOp op : few)
      found.push_back(alongK(op));
    for (linalg::LinalgOp op : found) {
      Value rewritten = rewriteConvolution(op);
      if (!rewritten)
        if (std::optional<PlainReduction> reduction = matchPlainReduction(op))
          rewritten = rewriteReduction(*reduction);
      if (!rewritten)
        continue;
      op->getResult(0).replaceAllUsesWith(rewritten);
      op->erase();
      ++numRewritten;
    }
    dropMarks(getOperation());
    keepLayout(getOperation(), results);
    collapseReaders(getOperation());
  }

private:
  /// Removes the marks of convolutions that were not rewritten.
  static void dropMarks(func::FuncOp function) {
    function.walk([](linalg::LinalgOp op) {
      if (sumsOverChannels(op))
        op->removeDiscardableAttr(kFormAttr);
    });
  }

  /// Returns true if the result of a convolution has its channels last: its mark says so, or, without a mark, kernels do
  /// not read operands in any order and it is not alone in the layout of the model.
  bool takesChannelsLast(linalg::LinalgOp op, std::optional<tile::Form> mark) const {
    if (mark)
      return *mark == tile::Form::channelsLast;
    return !keepsLayout && (!isMatmulOfImage(op, costs.cpu) || joinsConvolutions(op, results));
  }

  /// Returns the result of a convolution that sums over input channels; null for other ops.
  Value rewriteConvolution(linalg::LinalgOp op) {
    std::optional<tile::Form> mark = markedForm(op);
    auto lines = op->getAttrOfType<IntegerAttr>(kTileLinesAttr);
    if (mark == tile::Form::winograd && lines) {
      WinogradConvolution rewritten = rewriteAsWinograd(op, lines.getInt());
      results.push_back(rewritten.channelsLast);
      return rewritten.result;
    }
    bool last = takesChannelsLast(op, mark);
    if (keepsLayout || (!last && isMatmulOfImage(op, costs.cpu))) {
      bool windowsLast = last || (mark && hasChannelsLast(op->getOperand(0), results));
      auto orderOf = [](bool last) { return last ? ImageOrder::channelsLast : ImageOrder::ofModel; };
      linalg::LinalgOp plain = keepsLayout ? op : withoutStride(op);
      WindowContraction rewritten = rewriteAsWindowContraction(plain, orderOf(last), orderOf(windowsLast));
      if (plain != op)
        plain.erase();
      if (rewritten.reshape)
        markReshape(rewritten.reshape);
      if (rewritten.channelsLast)
        results.push_back(rewritten.channelsLast);
      return rewritten.result;
    }
    std::optional<Convolution> convolution = matchConvolution(op, costs.common);
    if (!convolution)
      return {};
    if (hasChannelsLast(op->getOperand(0), results))
      takeChannelsLast(*convolution, costs.common);
    Value own;
    Value rewritten = ConvolutionRewriter(*convolution, costs.cpu).rewrite(own);
    if (auto reshape = own.getDefiningOp<tensor::ExpandShapeOp>())
      markReshape(reshape);
    if (last)
      results.push_back(own);
    return rewritten;
  }

  CostParameters costs;     ///< of the target, or the usual ones
  bool keepsLayout = false; ///< kernels read operands in any order, so contractions keep the convolution's layout
  SmallVector<Value> results; ///< of contractions: points of the image, then channels
};
} // namespace
} // namespace tilewright
