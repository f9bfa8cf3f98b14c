// Widens convolutions of narrow floats that stay with IREE to f32, because IREE 3.13 computes some contractions of f16
// on CUDA wrongly. A convolution of 1x1 with stride 2 becomes a matmul on tensor cores whose operand is a slice of
// every other element, and its result has a relative error of 0.97; the same in f32 runs without tensor cores and is
// right. IREE decides deep inside which convolutions take this path, so none is left to it in a narrow type. IREE would
// fuse an extension to f32 into the product, which makes it a product of f16 again; a barrier behind the extension
// prevents it. Weights are extended once, when the program is loaded.
#include "passes/Passes.h"
#include "passes/support/JsonFile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"

namespace tilewright {
#define GEN_PASS_DEF_WIDENCONVOLUTIONS
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {
/// Returns true for floats narrower than f32, which tensor cores can multiply.
bool isNarrow(Type type) {
  auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type));
  return element && element.getWidth() < 32;
}

bool hasNarrowOperand(linalg::LinalgOp op) {
  return llvm::any_of(op->getOperands(), [](Value operand) { return isNarrow(operand.getType()); });
}

/// Returns true if the index of some dim of an input is more than a loop index: a window, or a stride.
bool readsWindows(linalg::LinalgOp op) {
  for (OpOperand *input : op.getDpsInputOperands())
    for (AffineExpr index : op.getMatchingIndexingMap(input).getResults())
      if (!isa<AffineDimExpr, AffineConstantExpr>(index))
        return true;
  return false;
}

/// Returns true if an input is a strided slice, or the windows of an image, possibly reshaped. IREE moves such movement
/// into the product's kernel.
bool readsSteps(linalg::LinalgOp op) {
  return llvm::any_of(op.getDpsInputs(), [](Value input) {
    Operation *source = input.getDefiningOp();
    while (isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(source))
      source = source->getOperand(0).getDefiningOp();
    auto slice = dyn_cast_or_null<tensor::ExtractSliceOp>(source);
    auto windows = dyn_cast_or_null<linalg::GenericOp>(source);
    return (slice && !slice.hasUnitStride()) || (windows && readsWindows(windows));
  });
}

/// Returns true for operations that can be widened to f32. Others, such as a maximum, are not part of a sum of
/// products.
bool isWidenable(Operation &op) {
  return isa<arith::ExtFOp, arith::MulFOp, arith::AddFOp, arith::SubFOp, arith::SIToFPOp, arith::UIToFPOp,
             linalg::YieldOp>(op);
}

/// Returns true if the body adds products to its accumulator.
bool sumsProducts(linalg::LinalgOp op) {
  Block &body = *op.getBlock();
  return op.getNumDpsInits() == 1 && op.getNumDpsInputs() >= 2 &&
         isa_and_nonnull<arith::AddFOp>(body.getTerminator()->getOperand(0).getDefiningOp()) &&
         llvm::any_of(body, [](Operation &inner) { return isa<arith::MulFOp>(inner); }) &&
         llvm::all_of(body, isWidenable);
}

bool shouldWiden(linalg::LinalgOp op) {
  return op.hasPureTensorSemantics() && op->getNumResults() == 1 && hasNarrowOperand(op) && sumsProducts(op) &&
         (isa<linalg::ConvolutionOpInterface>(*op) || readsWindows(op) || readsSteps(op));
}

Value emptyLike(ImplicitLocOpBuilder &builder, Value tensor, Type element) {
  return tensor::EmptyOp::create(builder, tensor::getMixedSizes(builder, builder.getLoc(), tensor), element);
}

/// Returns the tensor with every element converted.
template <typename Conversion> Value convert(ImplicitLocOpBuilder &builder, Value tensor, Type element) {
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  Value into = emptyLike(builder, tensor, element);
  SmallVector<AffineMap> maps(2, builder.getMultiDimIdentityMap(rank));
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(builder, into.getType(), tensor, into, maps, loops,
                                           [&](OpBuilder &body, Location loc, ValueRange elements) {
                                             Value converted = Conversion::create(body, loc, element, elements[0]);
                                             linalg::YieldOp::create(body, loc, converted);
                                           });
  return generic.getResult(0);
}

Value createIree(ImplicitLocOpBuilder &builder, StringRef name, ValueRange operands, Type result) {
  OperationState state(builder.getLoc(), name);
  state.addOperands(operands);
  state.addTypes(result);
  return builder.create(state)->getResult(0);
}

/// Extended inputs, shared by all convolutions of a block.
using Extended = DenseMap<std::pair<Value, Block *>, Value>;

/// Returns the input in f32, behind a barrier that hides its narrow type from IREE.
Value extendBehindBarrier(ImplicitLocOpBuilder &builder, Value tensor, Extended &extended) {
  Value &known = extended[{tensor, builder.getBlock()}];
  if (known)
    return known;
  Value wide = convert<arith::ExtFOp>(builder, tensor, builder.getF32Type());
  auto type = cast<RankedTensorType>(wide.getType());
  known = createIree(builder, "util.optimization_barrier", wide, type);
  if (type.hasStaticShape())
    return known;
  // The barrier also hides dynamic sizes from IREE, so they are tied to the result.
  SmallVector<Value> sizes = {known};
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim))
      sizes.push_back(tensor::DimOp::create(builder, tensor, dim));
  known = createIree(builder, "flow.tensor.tie_shape", sizes, type);
  return known;
}

/// Returns the initial accumulators in f32. They are usually one constant for all elements.
Value extendStart(ImplicitLocOpBuilder &builder, Value start) {
  auto fill = start.getDefiningOp<linalg::FillOp>();
  FloatAttr number;
  if (!fill || !matchPattern(fill.getInputs()[0], m_Constant(&number)))
    return convert<arith::ExtFOp>(builder, start, builder.getF32Type());
  Value wide = arith::ConstantOp::create(builder, builder.getF32FloatAttr(number.getValue().convertToDouble()));
  return linalg::FillOp::create(builder, wide, emptyLike(builder, start, builder.getF32Type())).getResult(0);
}

/// Widens the body to f32, operation by operation. Extensions in it are removed, because their operands are wide.
void widenBody(Block &body) {
  Type wide = Float32Type::get(body.front().getContext());
  for (BlockArgument argument : body.getArguments())
    if (isNarrow(argument.getType()))
      argument.setType(wide);
  for (Operation &op : llvm::make_early_inc_range(body.without_terminator())) {
    Value result = op.getResult(0);
    if (isNarrow(result.getType()))
      result.setType(wide);
    if (isa<arith::ExtFOp>(op) && op.getOperand(0).getType() == result.getType()) {
      result.replaceAllUsesWith(op.getOperand(0));
      op.erase();
    }
  }
}

void widen(linalg::LinalgOp op, Extended &extended) {
  ImplicitLocOpBuilder builder(op.getLoc(), op);
  auto narrow = cast<RankedTensorType>(op->getResult(0).getType());
  for (OpOperand *input : op.getDpsInputOperands())
    if (isNarrow(input->get().getType()))
      input->set(extendBehindBarrier(builder, input->get(), extended));
  widenBody(*op.getBlock());
  if (!isNarrow(narrow))
    return;
  OpOperand &start = op.getDpsInitsMutable()[0];
  start.set(extendStart(builder, start.get()));
  Value sum = op->getResult(0);
  SmallVector<OpOperand *> readers;
  for (OpOperand &use : sum.getUses())
    readers.push_back(&use);
  sum.setType(start.get().getType());
  builder.setInsertionPointAfter(op);
  Value rounded = convert<arith::TruncFOp>(builder, sum, narrow.getElementType());
  for (OpOperand *reader : readers)
    reader->set(rounded);
}

struct WidenConvolutions : tilewright::impl::WidenConvolutionsBase<WidenConvolutions> {
  using WidenConvolutionsBase::WidenConvolutionsBase;

  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> found;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (shouldWiden(op))
        found.push_back(op);
    });
    Extended extended;
    for (linalg::LinalgOp op : found)
      widen(op, extended);
    numWidened += found.size();
    auto count = llvm::json::Object{{"widened", static_cast<int64_t>(found.size())}};
    if (!record.empty() && failed(writeJson(getOperation(), record, std::move(count))))
      signalPassFailure();
  }
};
} // namespace
