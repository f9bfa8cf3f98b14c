// Convolutions as contractions of matrices. The windows of the image become the rows of one matrix (im2col), which is
// movement alone: the planner lets the contraction read the image through it, or keeps it in a workgroup's memory. The
// weights are the other matrix as they lie. So a convolution has everything that a matmul has: packed weights, a micro
// kernel, epilogues in the same kernel.
#include "passes/Passes.h"
#include "passes/analysis/Contraction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_UNFOLDCONVOLUTIONS
#include "passes/Passes.h.inc"

namespace {
/// A convolution's loops by what they are.
struct Convolution {
  linalg::LinalgOp op;
  SmallVector<unsigned> points; ///< batch and image dims of the result: rows
  SmallVector<unsigned> window; ///< input channel and window dims, in the order of the weights: summed
  unsigned channel;             ///< of the result
  bool channelFirst;            ///< in the weights; otherwise it is last
};

AffineMap mapOf(linalg::LinalgOp op, unsigned operand) { return op.getIndexingMapsArray()[operand]; }

/// Dims of a map that is a permutation of some of them.
std::optional<SmallVector<unsigned>> dimsOf(AffineMap map) {
  if (!map.isProjectedPermutation())
    return std::nullopt;
  return llvm::map_to_vector(map.getResults(),
                             [](AffineExpr index) { return cast<AffineDimExpr>(index).getPosition(); });
}

std::optional<Convolution> matchConvolution(linalg::LinalgOp op) {
  if (op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1 || !op.hasPureTensorSemantics() || op.hasDynamicShape() ||
      llvm::is_contained(op.getStaticLoopRanges(), 0))
    return std::nullopt;
  FailureOr<linalg::ConvolutionDimensions> dims = linalg::inferConvolutionDims(op);
  std::optional<SmallVector<unsigned>> weights = dimsOf(mapOf(op, 1)), result = dimsOf(mapOf(op, 2));
  if (failed(dims) || !weights || !result || dims->outputChannel.size() != 1 || !dims->depth.empty())
    return std::nullopt; // one filter for each channel has nothing to contract
  Block &body = *op.getBlock();
  if (!matchSumOfProducts(body.getTerminator()->getOperand(0), body.getArgument(2)))
    return std::nullopt;
  Convolution found{op, {}, {}, dims->outputChannel[0], weights->front() == dims->outputChannel[0]};
  if (!found.channelFirst && weights->back() != found.channel)
    return std::nullopt;
  found.points.append(dims->batch.begin(), dims->batch.end());
  found.points.append(dims->outputImage.begin(), dims->outputImage.end());
  for (unsigned dim : *weights)
    if (dim != found.channel)
      found.window.push_back(dim);
  if (found.points.size() + 1 != result->size() || found.points.size() + found.window.size() + 1 != op.getNumLoops())
    return std::nullopt;
  return found;
}

class Unfolder {
public:
  explicit Unfolder(const Convolution &convolution)
      : convolution(convolution), op(convolution.op), builder(op), loc(op.getLoc()), sizes(op.getStaticLoopRanges()) {}

  Value unfold() {
    int64_t rows = count(convolution.points), terms = count(convolution.window), columns = sizes[convolution.channel];
    Value image = reshaped(windows(), {rows, terms});
    SmallVector<int64_t> matrix{columns, terms};
    if (!convolution.channelFirst)
      std::swap(matrix[0], matrix[1]);
    Value weights = reshaped(op->getOperand(1), matrix);
    SmallVector<int64_t> shape = sizesOf(convolution.points);
    shape.push_back(columns);
    return arranged(reshaped(product(image, weights, rows, columns), shape));
  }

private:
  int64_t count(ArrayRef<unsigned> dims) const { return llvm::product_of(sizesOf(dims)); }

  SmallVector<int64_t> sizesOf(ArrayRef<unsigned> dims) const {
    return llvm::map_to_vector(dims, [&](unsigned dim) { return sizes[dim]; });
  }

  Value empty(ArrayRef<int64_t> shape, Type element) { return tensor::EmptyOp::create(builder, loc, shape, element); }

  Value reshaped(Value value, ArrayRef<int64_t> shape) {
    auto type = cast<RankedTensorType>(value.getType());
    auto target = RankedTensorType::get(shape, type.getElementType());
    if (type == target)
      return value;
    bool expands = type.getRank() < target.getRank();
    auto groups =
        expands ? getReassociationIndicesForReshape(target, type) : getReassociationIndicesForReshape(type, target);
    assert(groups && "a view of the same elements");
    if (expands)
      return tensor::ExpandShapeOp::create(builder, loc, target, value, *groups);
    return tensor::CollapseShapeOp::create(builder, loc, target, value, *groups);
  }

  /// What the windows hold: the points' dims, then the windows'.
  Value windows() {
    Value image = op->getOperand(0);
    Type element = cast<RankedTensorType>(image.getType()).getElementType();
    SmallVector<unsigned> order(convolution.points);
    order.append(convolution.window);
    SmallVector<AffineExpr> places(op.getNumLoops(), builder.getAffineConstantExpr(0));
    for (auto [place, dim] : llvm::enumerate(order))
      places[dim] = builder.getAffineDimExpr(place);
    AffineMap read = mapOf(op, 0).replaceDimsAndSymbols(places, {}, order.size(), 0);
    SmallVector<utils::IteratorType> loops(order.size(), utils::IteratorType::parallel);
    auto generic = linalg::GenericOp::create(
        builder, loc, TypeRange(RankedTensorType::get(sizesOf(order), element)), image, empty(sizesOf(order), element),
        {read, builder.getMultiDimIdentityMap(order.size())}, loops,
        [](OpBuilder &body, Location at, ValueRange elements) { linalg::YieldOp::create(body, at, elements[0]); });
    return generic.getResult(0);
  }

  Value product(Value image, Value weights, int64_t rows, int64_t columns) {
    Type element = cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
    AffineExpr row, column, term;
    bindDims(builder.getContext(), row, column, term);
    AffineMap maps[] = {AffineMap::get(3, 0, {row, term}, builder.getContext()),
                        AffineMap::get(3, 0,
                                       convolution.channelFirst ? ArrayRef<AffineExpr>{column, term}
                                                                : ArrayRef<AffineExpr>{term, column},
                                       builder.getContext()),
                        AffineMap::get(3, 0, {row, column}, builder.getContext())};
    Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(element));
    Value sums = linalg::FillOp::create(builder, loc, zero, empty({rows, columns}, element)).getResult(0);
    using Kind = utils::IteratorType;
    auto generic = linalg::GenericOp::create(builder, loc, TypeRange(sums.getType()), ValueRange{image, weights}, sums,
                                             maps, {Kind::parallel, Kind::parallel, Kind::reduction});
    IRMapping none;
    op->getRegion(0).cloneInto(&generic.getRegion(), none);
    return generic.getResult(0);
  }

  /// The result as the convolution lays it out, with what it starts from.
  Value arranged(Value value) {
    SmallVector<int64_t> order(convolution.points.begin(), convolution.points.end());
    order.push_back(convolution.channel);
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    SmallVector<AffineExpr> read(order.size());
    for (auto [place, dim] : llvm::enumerate(*dimsOf(mapOf(op, 2))))
      read[llvm::find(order, dim) - order.begin()] = builder.getAffineDimExpr(place);
    AffineMap all = builder.getMultiDimIdentityMap(type.getRank());
    AffineMap turned = AffineMap::get(type.getRank(), 0, read, builder.getContext());
    Value start = op.getDpsInits()[0];
    AffineMap readStart = all;
    if (auto broadcast = start.getDefiningOp<linalg::BroadcastOp>()) {
      readStart = broadcast.getIndexingMapsArray()[0]; // a bias stays as small as it is
      start = broadcast.getInput();
    }
    auto fill = start.getDefiningOp<linalg::FillOp>();
    bool isZero =
        fill && (matchPattern(fill.getInputs()[0], m_AnyZeroFloat()) || matchPattern(fill.getInputs()[0], m_Zero()));
    SmallVector<Value> inputs{value};
    SmallVector<AffineMap> maps{turned};
    if (!isZero) {
      inputs.push_back(start);
      maps.push_back(readStart);
    }
    maps.push_back(all);
    SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
    auto add = [&](OpBuilder &body, Location at, ValueRange elements) {
      Value sum = elements[0];
      if (!isZero)
        sum = isa<FloatType>(type.getElementType()) ? arith::AddFOp::create(body, at, sum, elements[1]).getResult()
                                                    : arith::AddIOp::create(body, at, sum, elements[1]).getResult();
      linalg::YieldOp::create(body, at, sum);
    };
    return linalg::GenericOp::create(builder, loc, TypeRange(type), inputs,
                                     empty(type.getShape(), type.getElementType()), maps, loops, add)
        .getResult(0);
  }

  const Convolution &convolution;
  linalg::LinalgOp op;
  OpBuilder builder;
  Location loc;
  SmallVector<int64_t> sizes; ///< of the convolution's loops
};

struct UnfoldConvolutions : impl::UnfoldConvolutionsBase<UnfoldConvolutions> {
  using UnfoldConvolutionsBase::UnfoldConvolutionsBase;

  void runOnOperation() override {
    SmallVector<Convolution> convolutions;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (linalg::isaConvolutionOpInterface(op))
        if (std::optional<Convolution> found = matchConvolution(op))
          convolutions.push_back(*found);
    });
    for (const Convolution &convolution : convolutions) {
      linalg::LinalgOp op = convolution.op;
      op->getResult(0).replaceAllUsesWith(Unfolder(convolution).unfold());
      op->erase();
      ++numUnfolded;
    }
  }
};
} // namespace
} // namespace tilewright
