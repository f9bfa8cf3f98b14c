#include "passes/normalize/WidenAccumulators.h"

#include "dialects/tile/TileAttributeNames.h"
#include "passes/graph/Form.h"
#include "passes/graph/Rounding.h"
#include "passes/graph/StartValue.h"
#include "passes/normalize/AccumulatorInit.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// The decision how a sum is rewritten.
struct Widening {
  linalg::LinalgOp op;
  arith::MulFOp product; ///< product that is computed and summed in f32 instead of f16 or bf16; null: no type changes
};

bool isSum(linalg::LinalgOp op) {
  bool isKnown = op.hasPureTensorSemantics() && !op.hasDynamicShape() && op.getNumDpsInits() == 1 &&
                 op->getNumResults() == 1 && op.getNumReductionLoops() > 0;
  Block *body = op.getBlock();
  return isKnown &&
         combiningKind(body->getArguments().back(), body->getTerminator()->getOperand(0)) == vector::CombiningKind::ADD;
}

/// Returns the product that a sum in f16 or bf16 adds up, or null.
arith::MulFOp narrowProduct(linalg::LinalgOp op) {
  Block *body = op.getBlock();
  auto sum = body->getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!sum || !isNarrowFloat(sum.getType()))
    return {};
  Value value = sum.getLhs() == body->getArguments().back() ? sum.getRhs() : sum.getLhs();
  auto product = value.getDefiningOp<arith::MulFOp>();
  return product && product->hasOneUse() ? product : arith::MulFOp();
}

std::optional<Widening> decide(linalg::LinalgOp op, bool isStrict) {
  if (!isSum(op))
    return std::nullopt;
  if (arith::MulFOp product = narrowProduct(op); product && !isStrict)
    return Widening{op, product};
  // tile-convolution-to-matmul adds the start of convolutions and pools itself, in the layout of its result.
  bool isLeft = startsFromZero(op) || linalg::isaConvolutionOpInterface(op);
  bool isInOrder = isStrict && isNarrowFloat(getElementTypeOrSelf(op->getResult(0)));
  return isLeft || isInOrder ? std::nullopt : std::optional(Widening{op, nullptr});
}

/// Returns the op's result computed from zero.
Value sumFromZero(OpBuilder &builder, linalg::LinalgOp op) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  Value start = zeros(builder, op.getLoc(), type.getShape(), type.getElementType());
  Operation *copy = builder.clone(*op);
  cast<linalg::LinalgOp>(copy).getDpsInitsMutable()[0].set(start);
  return copy->getResult(0);
}

/// Returns the op's result computed from zero in f32, in which products of two numbers of 11 bits are exact.
Value sumInF32(OpBuilder &builder, const Widening &what) {
  linalg::LinalgOp op = what.op;
  Type wide = builder.getF32Type();
  Value start = zeros(builder, op.getLoc(), cast<RankedTensorType>(op->getResult(0).getType()).getShape(), wide);
  Block &body = *op.getBlock();
  Operation *narrow = what.product, *sum = body.getTerminator()->getOperand(0).getDefiningOp();
  auto widened = [&](OpBuilder &inside, Location at, ValueRange elements) {
    IRMapping values;
    values.map(body.getArguments(), elements);
    for (Operation &each : body.without_terminator())
      if (&each != narrow && &each != sum)
        inside.clone(each, values);
    SmallVector<Value> operands;
    for (Value operand : narrow->getOperands())
      operands.push_back(arith::ExtFOp::create(inside, at, wide, values.lookupOrDefault(operand)));
    Value product = arith::MulFOp::create(inside, at, operands[0], operands[1]);
    linalg::YieldOp::create(inside, at, arith::AddFOp::create(inside, at, elements.back(), product).getResult());
  };
  return linalg::GenericOp::create(builder, op.getLoc(), TypeRange(start.getType()), op.getDpsInputs(), start,
                                   op.getIndexingMapsArray(), op.getIteratorTypesArray(), widened)
      .getResult(0);
}

void apply(const Widening &what) {
  linalg::LinalgOp op = what.op;
  OpBuilder builder(op);
  Value sums = what.product ? sumInF32(builder, what) : sumFromZero(builder, op);
  int64_t rank = cast<RankedTensorType>(sums.getType()).getRank();
  linalg::GenericOp sum = addStart(builder, op, sums, builder.getMultiDimIdentityMap(rank));
  if (what.product)
    setForm(sum, tile::Form::wideSum);
  op->replaceAllUsesWith(sum);
  op->erase();
}
} // namespace

bool tilewright::widenAccumulators(func::FuncOp function, bool isStrict) {
  SmallVector<Widening> found;
  function.walk([&](linalg::LinalgOp op) {
    if (std::optional<Widening> what = decide(op, isStrict))
      found.push_back(*what);
  });
  for (const Widening &what : found)
    apply(what);
  return !found.empty();
}
