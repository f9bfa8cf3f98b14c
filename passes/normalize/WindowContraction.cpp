// Sorts the loops of the convolution into the dims of the contraction: a run of neighbouring loops becomes one dim.
// Then all tensors are reshaped to those dims. (An implicit GEMM with one dim for each loop would reduce over short
// loops around short steps of K, whose copies could not overlap.)
#include "passes/normalize/WindowContraction.h"

#include "passes/graph/Contraction.h"
#include "passes/normalize/AccumulatorInit.h"
#include "passes/normalize/ReshapedTo.h"
#include "passes/support/AffineAlgebra.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// Loops of the convolution that are one dim of the contraction, outermost first.
using Run = SmallVector<unsigned>;

/// The loops of a convolution by their role.
struct Loops {
  SmallVector<unsigned, 2> batch, image, channel, group, inputChannel, window;

  bool isReduced(unsigned loop) const {
    return llvm::is_contained(inputChannel, loop) || llvm::is_contained(window, loop);
  }
  /// Returns true if the windows have the loop and the weights do not.
  bool isPoint(unsigned loop) const { return llvm::is_contained(batch, loop) || llvm::is_contained(image, loop); }
  /// Returns true if neighbouring loops may share a dim: all tensors that have one of them also have the other.
  bool areAlike(unsigned a, unsigned b) const {
    return isReduced(a) == isReduced(b) && isPoint(a) == isPoint(b) &&
           llvm::is_contained(group, a) == llvm::is_contained(group, b);
  }
};

SmallVector<unsigned> dimsOf(AffineMap map) {
  return llvm::map_to_vector(map.getResults(),
                             [](AffineExpr index) { return cast<AffineDimExpr>(index).getPosition(); });
}

std::optional<Loops> loopsOf(linalg::LinalgOp op) {
  FailureOr<linalg::ConvolutionDimensions> dims = linalg::inferConvolutionDims(op);
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  if (failed(dims) || maps.size() != 3 || !maps[1].isProjectedPermutation() || !maps[2].isProjectedPermutation() ||
      dims->inputChannel.empty() || dims->outputChannel.empty())
    return std::nullopt;
  Block &body = *op.getBlock();
  // Quantized values are in i32 until tile-lower-quantized-matmul finds their bytes.
  bool isWide = getElementTypeOrSelf(op->getResult(0)).isInteger(32);
  if (!isWide && !matchSumOfProducts(body.getTerminator()->getOperand(0), body.getArgument(2)))
    return std::nullopt;
  Loops loops{dims->batch, dims->outputImage, dims->outputChannel, dims->depth, dims->inputChannel, dims->filterLoop};
  size_t count = loops.batch.size() + loops.image.size() + loops.channel.size() + loops.group.size() +
                 loops.inputChannel.size() + loops.window.size();
  return count == op.getNumLoops() ? std::optional(std::move(loops)) : std::nullopt;
}

class Rewriter {
public:
  Rewriter(linalg::LinalgOp op, Loops loops, ImageOrder order, ImageOrder windows)
      : op(op), loops(std::move(loops)), order(order), windows(windows), builder(op), loc(op.getLoc()),
        sizes(op.getStaticLoopRanges()), maps(op.getIndexingMapsArray()) {}

  WindowContraction rewrite() {
    Run inResult = loopsOfResult(), inWeights = loopsOfWeights();
    SmallVector<Run> result = runsIn(inResult), weights = runsIn(inWeights);
    SmallVector<Run> image = runsOfWindows(result, weights);
    SmallVector<Run> dims(result);
    llvm::copy_if(weights, std::back_inserter(dims), [&](const Run &run) { return loops.isReduced(run.front()); });
    Value windows = reshaped(windowsIn(image), shapeOf(image));
    Value filters = reshaped(transposed(op->getOperand(1), dimsOf(maps[1]), inWeights), shapeOf(weights));
    Value start = zeros(builder, loc, shapeOf(result), getElementTypeOrSelf(op->getResult(0)));
    AffineMap read[] = {mapOf(image, dims), mapOf(weights, dims), mapOf(result, dims)};
    SmallVector<utils::IteratorType> types = llvm::map_to_vector(dims, [&](const Run &run) {
      return loops.isReduced(run.front()) ? utils::IteratorType::reduction : utils::IteratorType::parallel;
    });
    auto product = linalg::GenericOp::create(builder, loc, TypeRange(start.getType()), ValueRange{windows, filters},
                                             start, read, types);
    IRMapping none;
    op->getRegion(0).cloneInto(&product.getRegion(), none);
    Value own = reshaped(product.getResult(0), sizesOf(inResult));
    AffineMap arranged = AffineMap::getPermutationMap(placesOf(dimsOf(maps[2]), inResult), builder.getContext());
    return {addStart(builder, op, own, arranged).getResult(0), own.getDefiningOp<tensor::ExpandShapeOp>(),
            order == ImageOrder::channelsLast ? own : Value()};
  }

private:
  /// Returns the loops of the result in the order of its dims: points, groups, channels if channels come last.
  Run loopsOfResult() const {
    Run own = dimsOf(maps[2]);
    if (order == ImageOrder::ofModel)
      return own;
    auto rank = [&](unsigned loop) { return loops.isPoint(loop) ? 0 : llvm::is_contained(loops.group, loop) ? 1 : 2; };
    llvm::stable_sort(own, [&](unsigned a, unsigned b) { return rank(a) < rank(b); });
    return own;
  }

  /// Returns the loops of the weights in the order of their dims; K is innermost if channels come last.
  Run loopsOfWeights() const {
    Run own = dimsOf(maps[1]);
    if (windows == ImageOrder::channelsLast)
      moveChannelsBehindWindow(own);
    if (order == ImageOrder::ofModel)
      return own;
    auto rank = [&](unsigned loop) {
      return loops.isReduced(loop) ? 2 : llvm::is_contained(loops.group, loop) ? 0 : 1;
    };
    llvm::stable_sort(own, [&](unsigned a, unsigned b) { return rank(a) < rank(b); });
    return own;
  }

  /// Reorders the loops of K among the places that they have.
  void moveChannelsBehindWindow(Run &own) const {
    Run reduced;
    llvm::copy_if(own, std::back_inserter(reduced), [&](unsigned loop) { return loops.isReduced(loop); });
    llvm::stable_sort(reduced, [&](unsigned a, unsigned b) {
      return !llvm::is_contained(loops.inputChannel, a) && llvm::is_contained(loops.inputChannel, b);
    });
    const unsigned *next = reduced.begin();
    for (unsigned &loop : own)
      if (loops.isReduced(loop))
        loop = *next++;
  }

  /// Returns where each loop of `loops` is in `order`.
  static SmallVector<int64_t> placesOf(ArrayRef<unsigned> order, ArrayRef<unsigned> loops) {
    return llvm::map_to_vector(
        loops, [&](unsigned loop) -> int64_t { return llvm::find(order, loop) - order.begin(); });
  }

  SmallVector<int64_t> sizesOf(ArrayRef<unsigned> order) const {
    return llvm::map_to_vector(order, [&](unsigned loop) { return sizes[loop]; });
  }

  /// Returns a tensor whose dims are the loops `from`, with its dims in the order `to`.
  Value transposed(Value tensor, ArrayRef<unsigned> from, ArrayRef<unsigned> to) {
    if (from == to)
      return tensor;
    Value into = tensor::EmptyOp::create(builder, loc, sizesOf(to), getElementTypeOrSelf(tensor));
    return linalg::TransposeOp::create(builder, loc, tensor, into, placesOf(from, to))->getResult(0);
  }

  /// Returns the runs of neighbours that may share a dim.
  SmallVector<Run> runsIn(ArrayRef<unsigned> order) const {
    SmallVector<Run> runs;
    for (unsigned loop : order) {
      if (runs.empty() || !loops.areAlike(runs.back().back(), loop))
        runs.emplace_back();
      runs.back().push_back(loop);
    }
    return runs;
  }

  /// Returns the dims of the windows, in the order in which they lie in the image: K where the image has its channels.
  SmallVector<Run> runsOfWindows(ArrayRef<Run> result, ArrayRef<Run> weights) const {
    SmallVector<Run> runs;
    auto append = [&](ArrayRef<Run> from, auto which) {
      for (const Run &run : from)
        if (which(run) && !llvm::is_contained(runs, run))
          runs.push_back(run);
    };
    auto isReduced = [&](const Run &run) { return loops.isReduced(run.front()); };
    auto hasAny = [](AffineExpr index, ArrayRef<unsigned> loops) {
      return llvm::any_of(loops, [&](unsigned loop) { return index.isFunctionOfDim(loop); });
    };
    if (order == ImageOrder::channelsLast) {
      append(result, [&](const Run &run) { return !llvm::is_contained(loops.channel, run.front()); });
      append(weights, isReduced);
      return runs;
    }
    for (AffineExpr index : maps[0].getResults()) {
      if (hasAny(index, loops.inputChannel))
        append(weights, isReduced);
      append(result, [&](const Run &run) { return hasAny(index, run); });
    }
    return runs;
  }

  /// Returns the elements of all windows, over the loops of the runs (im2col); the image itself if it has them in that
  /// order.
  Value windowsIn(ArrayRef<Run> runs) {
    Run order;
    for (const Run &run : runs)
      order.append(run);
    SmallVector<int64_t> shape = llvm::map_to_vector(order, [&](unsigned loop) { return sizes[loop]; });
    SmallVector<AffineExpr> places(op.getNumLoops(), builder.getAffineConstantExpr(0));
    for (auto [place, loop] : llvm::enumerate(order))
      places[loop] = builder.getAffineDimExpr(place);
    Value image = op->getOperand(0);
    AffineMap read = maps[0].replaceDimsAndSymbols(places, {}, order.size(), 0);
    if (isWhole(simplifyInDomain(read, shape), shape, image))
      return image;
    Type element = getElementTypeOrSelf(image);
    SmallVector<utils::IteratorType> types(order.size(), utils::IteratorType::parallel);
    Value into = tensor::EmptyOp::create(builder, loc, shape, element);
    auto copy = [](OpBuilder &body, Location at, ValueRange elements) { linalg::YieldOp::create(body, at, elements[0]); };
    return linalg::GenericOp::create(builder, loc, TypeRange(into.getType()), image, into,
                                     {read, builder.getMultiDimIdentityMap(order.size())}, types, copy)
        .getResult(0);
  }

  /// Returns true if an access reads every element of the tensor once, in the order in which they lie.
  static bool isWhole(AffineMap read, ArrayRef<int64_t> shape, Value tensor) {
    int64_t last = -1;
    for (AffineExpr index : read.getResults())
      if (auto dim = dyn_cast<AffineDimExpr>(index); dim && static_cast<int64_t>(dim.getPosition()) > last)
        last = dim.getPosition();
      else if (index != 0)
        return false;
    return llvm::product_of(shape) == cast<RankedTensorType>(tensor.getType()).getNumElements();
  }

  int64_t sizeOf(const Run &run) const {
    return llvm::product_of(llvm::map_range(run, [&](unsigned loop) { return sizes[loop]; }));
  }

  SmallVector<int64_t> shapeOf(ArrayRef<Run> runs) const {
    return llvm::map_to_vector(runs, [&](const Run &run) { return sizeOf(run); });
  }

  Value reshaped(Value value, ArrayRef<int64_t> shape) { return reshapedTo(builder, loc, value, shape); }

  AffineMap mapOf(ArrayRef<Run> runs, ArrayRef<Run> dims) {
    SmallVector<AffineExpr> indices = llvm::map_to_vector(
        runs, [&](const Run &run) { return builder.getAffineDimExpr(llvm::find(dims, run) - dims.begin()); });
    return AffineMap::get(dims.size(), 0, indices, builder.getContext());
  }

  linalg::LinalgOp op;
  Loops loops;
  ImageOrder order, windows;
  OpBuilder builder;
  Location loc;
  SmallVector<int64_t> sizes; ///< extents of the convolution's loops
  SmallVector<AffineMap> maps;
};
} // namespace

WindowContraction tilewright::rewriteAsWindowContraction(linalg::LinalgOp op, ImageOrder order,
                                                         ImageOrder windows) {
  std::optional<Loops> loops = loopsOf(op);
  return loops ? Rewriter(op, std::move(*loops), order, windows).rewrite() : WindowContraction();
}
