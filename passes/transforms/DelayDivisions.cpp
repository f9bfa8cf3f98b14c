// Divide after a contraction instead of before it (Chimera section 4: the division of a softmax, swapped past the
// second matmul): where every row of a contraction's operand was divided by one number, so can be the row of its
// result, which most often is the smaller. Only where the divisor is the sum of what it divides, all of it exponentials
// of differences to a maximum: then the terms are one at the most and the divisor at least one, so products neither
// overflow nor vanish that would not have, and a row whose sum is NaN gives NaN either way.
#include "passes/Passes.h"
#include "passes/analysis/AffineAlgebra.h"
#include "passes/analysis/Contraction.h"
#include "passes/analysis/OwnMaximum.h"
#include "passes/analysis/Rounding.h"
#include "passes/analysis/TensorExpr.h"
#include "passes/plan/PlanNumerics.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_DELAYDIVISIONS
#include "passes/Passes.h.inc"

namespace {
constexpr llvm::StringLiteral kDelayedForm = "division after its contraction";
/// The bound is vecmath::expForBf16's.
constexpr llvm::StringLiteral kForBf16Form = "exponentials within 2^-13";

/// `contraction` multiplies with what `division` divided, at most rounded after it, and could be divided itself.
struct Delay {
  linalg::LinalgOp contraction;
  linalg::GenericOp division;
  Value divided, divisor;
  AffineMap divisorMap; ///< from the contraction's result to the divisor
};

/// A generic that computes each element of its result from inputs of the same place, or broadcast to it.
linalg::GenericOp elementwiseOp(Value value) {
  auto generic = value.getDefiningOp<linalg::GenericOp>();
  bool plain = generic && generic.getNumResults() == 1 && generic.getNumReductionLoops() == 0 &&
               generic.getMatchingIndexingMap(generic.getDpsInitOperand(0)).isIdentity();
  return plain ? generic : linalg::GenericOp();
}

Value yielded(linalg::GenericOp generic) { return generic.getBody()->getTerminator()->getOperand(0); }

/// The generic that computes `value`, an element of its own or of one of its inputs, and how it does.
std::pair<linalg::GenericOp, Operation *> madeBy(linalg::GenericOp generic, Value value) {
  if (OpOperand *input = inputOf(generic, value)) {
    generic = elementwiseOp(input->get());
    value = generic ? yielded(generic) : Value();
  }
  return {generic, value ? value.getDefiningOp() : nullptr};
}

/// Whether a tensor holds exponentials of differences to a maximum: one at the most.
bool isExponential(Value tensor) {
  linalg::GenericOp generic = elementwiseOp(tensor);
  Operation *exponential = generic ? yielded(generic).getDefiningOp() : nullptr;
  if (!isa_and_nonnull<math::ExpOp, math::Exp2Op>(exponential))
    return false;
  auto [of, argument] = madeBy(generic, exponential->getOperand(0));
  auto difference = dyn_cast_or_null<arith::SubFOp>(argument);
  return difference && isBelowOwnMaximum(of, difference);
}

/// Whether `sum` adds up elements of `terms` alone, each once.
bool isSumOf(Value sum, Value terms) {
  auto generic = behindViews(sum).getDefiningOp<linalg::GenericOp>();
  if (!generic || generic.getNumReductionLoops() == 0 || generic.getNumDpsInputs() != 1 || generic.getNumResults() != 1)
    return false;
  auto add = yielded(generic).getDefiningOp<arith::AddFOp>();
  bool adds = add && llvm::hasNItems(*generic.getBody(), 2) && add.getLhs() != add.getRhs();
  return adds && generic.getDpsInputs()[0] == terms && generic.getIndexingMapsArray()[0].isPermutation();
}

/// The only division of a generic's body.
arith::DivFOp onlyDivision(linalg::GenericOp generic) {
  auto division = yielded(generic).getDefiningOp<arith::DivFOp>();
  return division && llvm::hasNItems(*generic.getBody(), 2) ? division : arith::DivFOp();
}

/// Whether a generic does nothing but round its elements to a narrower type. Rounded before a division instead of after
/// it, a quotient errs by as much.
bool roundsOnly(linalg::GenericOp generic) {
  auto rounded = generic ? yielded(generic).getDefiningOp<arith::TruncFOp>() : arith::TruncFOp();
  return rounded && llvm::hasNItems(*generic.getBody(), 2) && inputOf(generic, rounded.getIn());
}

/// The division whose result a contraction reads, at most rounded and moved about, and where: `map` goes from the
/// domain of the contraction to that of the division.
linalg::GenericOp divisionBehind(Value tensor, AffineMap &map, ArrayRef<int64_t> domain) {
  while (tensor.hasOneUse()) {
    Operation *producer = tensor.getDefiningOp();
    FailureOr<TensorExpr> expr = failure();
    if (producer)
      expr = describe(producer);
    if (failed(expr) || expr->op->getNumResults() != 1 || !expr->oneReliesOnOne())
      return {};
    map = composeInDomain(expr->pointOf(0), map, domain);
    if (linalg::GenericOp generic = elementwiseOp(tensor); generic && onlyDivision(generic))
      return generic;
    bool passesOn = expr->kind == ExprKind::movement || roundsOnly(elementwiseOp(tensor));
    if (!passesOn || expr->inputs.size() != 1 || expr->inputs[0].guard != IntegerSet())
      return {};
    map = composeInDomain(expr->inputs[0].map, map, domain);
    tensor = expr->inputs[0].tensor;
  }
  return {};
}

std::optional<Delay> match(const TensorExpr &contraction, const TensorAccess &access) {
  AffineMap map = access.map;
  linalg::GenericOp division = divisionBehind(access.tensor, map, contraction.domain);
  if (!division)
    return std::nullopt;
  arith::DivFOp divide = onlyDivision(division);
  OpOperand *divided = inputOf(division, divide.getLhs()), *divisor = inputOf(division, divide.getRhs());
  if (!divided || !divisor || !division.getMatchingIndexingMap(divided).isIdentity() ||
      divided->get().getType() != division.getResult(0).getType() || !isExponential(divided->get()) ||
      !isSumOf(divisor->get(), divided->get()))
    return std::nullopt;
  auto init = dyn_cast_or_null<FloatAttr>(constantElement(cast<linalg::LinalgOp>(contraction.op).getDpsInits()[0]));
  if (!init || !init.getValue().isZero())
    return std::nullopt;
  auto type = cast<RankedTensorType>(contraction.op->getResult(0).getType());
  Type element = type.getElementType(), summed = getElementTypeOrSelf(divisor->get().getType());
  bool holdsSum = element == summed || (element.isF32() && isNarrowFloat(summed));
  if (!holdsSum)
    return std::nullopt;
  map = composeInDomain(division.getMatchingIndexingMap(divisor), map, contraction.domain);
  if (llvm::any_of(contraction.reductions, [&](int64_t dim) { return map.isFunctionOfDim(dim); }))
    return std::nullopt;
  bool fewer = type.getNumElements() < cast<RankedTensorType>(divided->get().getType()).getNumElements();
  if (!fewer)
    return std::nullopt;
  return Delay{cast<linalg::LinalgOp>(contraction.op), division, divided->get(), divisor->get(),
               composeInDomain(map, contraction.pointOf(0), type.getShape())};
}

/// What reads a tensor, or a reshape of it.
SmallVector<Operation *> readersOf(Value tensor) {
  SmallVector<Operation *> readers;
  for (Operation *user : tensor.getUsers())
    if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(user))
      llvm::append_range(readers, readersOf(user->getResult(0)));
    else
      readers.push_back(user);
  return readers;
}

/// Whether exponentials of f32 are rounded to bf16 wherever they are not added up, and `quotient` alone divides by the
/// sum.
bool areForBf16(Value exponentials, Value divisor, Operation *quotient) {
  Operation *sum = behindViews(divisor).getDefiningOp();
  auto isRounded = [](Operation *reader) {
    auto generic = dyn_cast<linalg::GenericOp>(reader);
    return roundsOnly(generic) && getElementTypeOrSelf(generic.getResult(0)).isBF16();
  };
  return getElementTypeOrSelf(exponentials).isF32() &&
         llvm::all_of(readersOf(exponentials), [&](Operation *reader) { return reader == sum || isRounded(reader); }) &&
         llvm::all_of(readersOf(sum->getResult(0)), [&](Operation *reader) { return reader == quotient; });
}

void markForBf16(Value exponentials) {
  linalg::GenericOp generic = elementwiseOp(exponentials);
  auto exponential = yielded(generic).getDefiningOp<math::ExpOp>();
  if (!exponential)
    return;
  OpBuilder builder(generic);
  exponential->setAttr(kForBf16Attr, builder.getUnitAttr());
  generic->setAttr(kFormAttr, builder.getStringAttr(kForBf16Form));
}

void delay(const Delay &what) {
  linalg::LinalgOp contraction = what.contraction;
  linalg::GenericOp division = what.division;
  OpBuilder builder(contraction->getContext());
  builder.setInsertionPointAfter(contraction);
  Location loc = division.getLoc();
  Value product = contraction->getResult(0);
  auto type = cast<RankedTensorType>(product.getType());
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> parallel(type.getRank(), utils::IteratorType::parallel);
  auto quotient = linalg::GenericOp::create(
      builder, loc, type, ValueRange{product, what.divisor}, empty, ArrayRef{identity, what.divisorMap, identity},
      parallel, [&](OpBuilder &body, Location at, ValueRange values) {
        Value by = values[1];
        if (by.getType() != type.getElementType())
          by = arith::ExtFOp::create(body, at, type.getElementType(), by);
        linalg::YieldOp::create(body, at, arith::DivFOp::create(body, at, values[0], by).getResult());
      });
  quotient->setAttr(kFormAttr, builder.getStringAttr(kDelayedForm));
  product.replaceAllUsesExcept(quotient.getResult(0), quotient);
  division.getResult(0).replaceAllUsesWith(what.divided);
  division.erase();
  if (areForBf16(what.divided, what.divisor, quotient))
    markForBf16(what.divided);
}

class DelayDivisions : public impl::DelayDivisionsBase<DelayDivisions> {
  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> contractions;
    getOperation().walk([&](linalg::LinalgOp op) { contractions.push_back(op); });
    for (linalg::LinalgOp op : contractions) {
      FailureOr<TensorExpr> expr = describe(op);
      if (failed(expr) || expr->kind != ExprKind::contraction || !whyNoSumOfProducts(*expr).empty())
        continue;
      for (const TensorAccess &access : expr->inputs)
        if (std::optional<Delay> what = match(*expr, access)) {
          delay(*what);
          ++delayed;
          break;
        }
    }
  }
};
} // namespace
} // namespace tilewright
