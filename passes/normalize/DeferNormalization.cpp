// Divides after a contraction instead of before it (Chimera section 4 swaps the division of a softmax past the second
// matmul). If every row of a contraction's operand is divided by one number, the row of its result, which is usually
// smaller, can be divided instead. The divisor must be the sum of the dividends, all of which are exponentials of
// differences to a maximum. Then every dividend is at most one and the divisor at least one, so that no product
// overflows or vanishes that would not have done so before, and a row whose sum is NaN gives NaN either way. A select
// that makes whole rows zero after the division, as ONNX's Attention does with fully masked rows, moves behind the
// contraction, too.
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/graph/Contraction.h"
#include "passes/graph/Form.h"
#include "passes/graph/FormPass.h"
#include "passes/graph/OwnMaximum.h"
#include "passes/graph/Rounding.h"
#include "passes/graph/TensorExpr.h"
#include "passes/support/AffineAlgebra.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_DEFERNORMALIZATION
#include "passes/Passes.h.inc"

namespace {
/// A select that makes whole rows zero: `choice` gives zero where `condition` equals `zeroWhere`, and `chosen`
/// elsewhere.
struct ZeroRows {
  linalg::GenericOp choice;
  Value chosen, condition;
  bool zeroWhere;
  AffineMap map;          ///< from the contraction's domain, later from its result, to the condition
  linalg::GenericOp test; ///< the op that tests `chosen` for NaN, if that is the condition; only whole rows are NaN
};

/// A division that can be moved behind the contraction that reads its quotients.
struct Deferral {
  linalg::LinalgOp contraction;
  linalg::GenericOp division;
  Value divided, divisor;
  AffineMap divisorMap; ///< map from the contraction's result to the divisor
  std::optional<ZeroRows> zeros;
};

Value yielded(linalg::GenericOp generic) { return generic.getBody()->getTerminator()->getOperand(0); }

/// Returns the generic that computes `value`, an element of `generic` or of one of its inputs, and the body op that
/// yields it.
std::pair<linalg::GenericOp, Operation *> madeBy(linalg::GenericOp generic, Value value) {
  if (OpOperand *input = inputOf(generic, value)) {
    generic = elementwiseOp(input->get());
    value = generic ? yielded(generic) : Value();
  }
  return {generic, value ? value.getDefiningOp() : nullptr};
}

/// Returns true if a tensor holds exponentials of differences to their own maximum, which are at most one.
bool isExponential(Value tensor) {
  linalg::GenericOp generic = elementwiseOp(tensor);
  Operation *exponential = generic ? yielded(generic).getDefiningOp() : nullptr;
  if (!isa_and_nonnull<math::ExpOp, math::Exp2Op>(exponential))
    return false;
  auto [of, argument] = madeBy(generic, exponential->getOperand(0));
  auto difference = dyn_cast_or_null<arith::SubFOp>(argument);
  return difference && isBelowOwnMaximum(of, difference);
}

/// Returns true if `sum` adds up the elements of `terms` only, each once.
bool isSumOf(Value sum, Value terms) {
  auto generic = behindViews(sum).getDefiningOp<linalg::GenericOp>();
  if (!generic || generic.getNumReductionLoops() == 0 || generic.getNumDpsInputs() != 1 || generic.getNumResults() != 1)
    return false;
  auto add = yielded(generic).getDefiningOp<arith::AddFOp>();
  bool adds = add && llvm::hasNItems(*generic.getBody(), 2) && add.getLhs() != add.getRhs();
  return adds && generic.getDpsInputs()[0] == terms && generic.getIndexingMapsArray()[0].isPermutation();
}

/// Returns the body op that computes a generic's result, or null. Callers check with `inputOf` that its operands are
/// elements of inputs or constants, so the rest of the body does not matter.
template <typename Op> Op lastOp(linalg::GenericOp generic) {
  return generic ? yielded(generic).getDefiningOp<Op>() : Op();
}

/// Returns the value of an element that is the same everywhere, or null.
FloatAttr constantOf(linalg::GenericOp generic, Value element) {
  OpOperand *input = inputOf(generic, element);
  return dyn_cast_or_null<FloatAttr>(constantElement(input ? input->get() : element));
}

/// A division in a generic: the dividend, and the operand by which it is divided or with whose reciprocal it is
/// multiplied.
struct Quotient {
  OpOperand *divided, *by;
  Value divisor; ///< the tensor of `by`, or the tensor that it holds reciprocals of
};

/// Returns the tensor that `tensor` holds reciprocals of, element by element, or null.
Value reciprocalOf(Value tensor) {
  linalg::GenericOp generic = elementwiseOp(tensor);
  auto division = lastOp<arith::DivFOp>(generic);
  FloatAttr one = division ? constantOf(generic, division.getLhs()) : FloatAttr();
  OpOperand *divisor = division ? inputOf(generic, division.getRhs()) : nullptr;
  bool inverts = one && one.getValue().isExactlyValue(1) && divisor;
  return inverts && generic.getMatchingIndexingMap(divisor).isIdentity() ? divisor->get() : Value();
}

/// Returns the quotient that a generic computes as a division or as a multiplication by a reciprocal.
std::optional<Quotient> quotientOf(linalg::GenericOp generic) {
  if (auto division = lastOp<arith::DivFOp>(generic)) {
    OpOperand *divided = inputOf(generic, division.getLhs()), *by = inputOf(generic, division.getRhs());
    return divided && by ? std::optional(Quotient{divided, by, by->get()}) : std::nullopt;
  }
  if (auto product = lastOp<arith::MulFOp>(generic))
    for (auto [factor, other] : {std::pair(product.getLhs(), product.getRhs()), {product.getRhs(), product.getLhs()}}) {
      OpOperand *divided = inputOf(generic, factor), *by = inputOf(generic, other);
      if (Value divisor = divided && by ? reciprocalOf(by->get()) : Value())
        return Quotient{divided, by, divisor};
    }
  return std::nullopt;
}

/// Returns the generic that computes `condition` by testing the elements of `tensor` for NaN, if the condition has no
/// other reader, or null.
linalg::GenericOp nanTest(Value condition, Value tensor) {
  linalg::GenericOp generic = elementwiseOp(condition);
  auto compare = lastOp<arith::CmpFOp>(generic);
  bool unordered =
      compare && condition.hasOneUse() &&
      (compare.getPredicate() == arith::CmpFPredicate::UNE || compare.getPredicate() == arith::CmpFPredicate::UNO);
  auto isElement = [&](Value value) {
    OpOperand *input = inputOf(generic, value);
    return input && input->get() == tensor && generic.getMatchingIndexingMap(input).isIdentity();
  };
  return unordered && isElement(compare.getLhs()) && isElement(compare.getRhs()) ? generic : linalg::GenericOp();
}

/// Returns the rows that a generic makes zero by selecting between zero and the element of one tensor. `map` leads from
/// the contraction's domain to that of the generic.
std::optional<ZeroRows> zeroRows(linalg::GenericOp generic, AffineMap map, ArrayRef<int64_t> domain) {
  auto select = lastOp<arith::SelectOp>(generic);
  OpOperand *condition = select ? inputOf(generic, select.getCondition()) : nullptr;
  if (!condition)
    return std::nullopt;
  for (bool zeroWhere : {true, false}) {
    FloatAttr zero = constantOf(generic, zeroWhere ? select.getTrueValue() : select.getFalseValue());
    OpOperand *chosen = inputOf(generic, zeroWhere ? select.getFalseValue() : select.getTrueValue());
    if (zero && zero.getValue().isZero() && chosen && generic.getMatchingIndexingMap(chosen).isIdentity())
      return ZeroRows{generic,
                      chosen->get(),
                      condition->get(),
                      zeroWhere,
                      composeInDomain(generic.getMatchingIndexingMap(condition), map, domain),
                      zeroWhere ? nanTest(condition->get(), chosen->get()) : linalg::GenericOp()};
  }
  return std::nullopt;
}

/// Returns true if a generic only rounds its elements to a narrower type. A quotient whose dividend is rounded has the
/// same relative error as one that is rounded itself.
bool roundsOnly(linalg::GenericOp generic) {
  auto rounded = lastOp<arith::TruncFOp>(generic);
  return rounded && inputOf(generic, rounded.getIn());
}

/// Returns true if a tensor has one reader, where a select and its NaN test count as one.
bool isReadOnce(Value tensor, const std::optional<ZeroRows> &zeros) {
  bool tested = zeros && zeros->test && zeros->chosen == tensor;
  return tensor.hasOneUse() || (tested && llvm::all_of(tensor.getUsers(), [&](Operation *reader) {
                                  return reader == zeros->test || reader == zeros->choice;
                                }));
}

/// Returns the division whose quotients a contraction reads, after at most roundings, movement and a select of zero
/// rows, or null. Updates `map`, which leads from the contraction's domain, so that it leads to that of the division.
linalg::GenericOp divisionBehind(Value tensor, AffineMap &map, ArrayRef<int64_t> domain,
                                 std::optional<ZeroRows> &zeros) {
  while (isReadOnce(tensor, zeros)) {
    Operation *producer = tensor.getDefiningOp();
    FailureOr<TensorExpr> expr = failure();
    if (producer)
      expr = describe(producer);
    if (failed(expr) || expr->op->getNumResults() != 1 || !expr->oneReliesOnOne())
      return {};
    map = composeInDomain(expr->pointOf(0), map, domain);
    linalg::GenericOp generic = elementwiseOp(tensor);
    if (quotientOf(generic))
      return generic;
    if (std::optional<ZeroRows> found = zeros ? std::nullopt : zeroRows(generic, map, domain)) {
      tensor = found->chosen;
      zeros = std::move(found);
      continue;
    }
    bool passesOn = expr->kind == ExprKind::movement || roundsOnly(generic);
    if (!passesOn || expr->inputs.size() != 1 || expr->inputs[0].guard != IntegerSet())
      return {};
    map = composeInDomain(expr->inputs[0].map, map, domain);
    tensor = expr->inputs[0].tensor;
  }
  return {};
}

std::optional<Deferral> match(const TensorExpr &contraction, const TensorAccess &access) {
  AffineMap map = access.map;
  std::optional<ZeroRows> zeros;
  linalg::GenericOp division = divisionBehind(access.tensor, map, contraction.domain, zeros);
  if (!division)
    return std::nullopt;
  auto [divided, by, divisor] = *quotientOf(division);
  if (!division.getMatchingIndexingMap(divided).isIdentity() ||
      divided->get().getType() != division.getResult(0).getType() || !isExponential(divided->get()) ||
      !isSumOf(divisor, divided->get()))
    return std::nullopt;
  auto init = dyn_cast_or_null<FloatAttr>(constantElement(cast<linalg::LinalgOp>(contraction.op).getDpsInits()[0]));
  if (!init || !init.getValue().isZero())
    return std::nullopt;
  auto type = cast<RankedTensorType>(contraction.op->getResult(0).getType());
  Type element = type.getElementType(), summed = getElementTypeOrSelf(divisor.getType());
  bool holdsSum = element == summed || (element.isF32() && isNarrowFloat(summed));
  if (!holdsSum)
    return std::nullopt;
  map = composeInDomain(division.getMatchingIndexingMap(by), map, contraction.domain);
  bool variesAlongK = llvm::any_of(contraction.reductions, [&](int64_t dim) {
    return map.isFunctionOfDim(dim) || (zeros && !zeros->test && zeros->map.isFunctionOfDim(dim));
  });
  if (variesAlongK)
    return std::nullopt;
  auto ofResult = [&](AffineMap ofDomain) {
    return composeInDomain(ofDomain, contraction.pointOf(0), type.getShape());
  };
  if (zeros && !zeros->test)
    zeros->map = ofResult(zeros->map);
  return Deferral{cast<linalg::LinalgOp>(contraction.op), division, divided->get(), divisor, ofResult(map), zeros};
}

/// Decides by the number of divisions.
FormChoice decideDeferral(const Deferral &what) {
  auto elements = [](Value tensor) { return cast<RankedTensorType>(tensor.getType()).getNumElements(); };
  int64_t before = elements(what.divided), after = elements(what.contraction->getResult(0));
  FormChoice choice;
  choice.form = tile::Form::deferredDivision;
  choice.taken = after < before;
  choice.numerics.reassociates = true;
  choice.reason = llvm::formatv("{0} divisions after the contraction, {1} before it", after, before);
  if (!choice.taken)
    choice.wouldChange = "a contraction with fewer results than exponentials";
  return choice;
}

/// Returns the readers of a tensor and of its reshapes.
SmallVector<Operation *> readersOf(Value tensor) {
  SmallVector<Operation *> readers;
  for (Operation *user : tensor.getUsers())
    if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(user))
      llvm::append_range(readers, readersOf(user->getResult(0)));
    else
      readers.push_back(user);
  return readers;
}

/// Returns true if exponentials in f32 are rounded to bf16 by all readers but their sum, and only `quotient` reads the
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
  exponential->setAttr(kForBf16Attr, UnitAttr::get(exponential->getContext()));
  setForm(generic, tile::Form::exponentialsForBf16); // the error bound is that of vecmath::expForBf16
}

/// Lets the readers of `op` read `before` instead, and erases `op` and a reciprocal that only it used.
void bypass(linalg::GenericOp op, Value before) {
  op.getResult(0).replaceAllUsesWith(before);
  SmallVector<Value> inputs(op.getDpsInputs());
  op.erase();
  for (Value input : inputs)
    if (linalg::GenericOp unread = elementwiseOp(input); unread && unread->use_empty())
      unread.erase();
}

void defer(const Deferral &what) {
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
  SmallVector<Value> inputs{product, what.divisor};
  SmallVector<AffineMap> maps{identity, what.divisorMap};
  if (what.zeros && !what.zeros->test) {
    inputs.push_back(what.zeros->condition);
    maps.push_back(what.zeros->map);
  }
  maps.push_back(identity);
  auto quotient = linalg::GenericOp::create(
      builder, loc, type, inputs, empty, maps, parallel, [&](OpBuilder &body, Location at, ValueRange values) {
        Value by = values[1];
        if (by.getType() != type.getElementType())
          by = arith::ExtFOp::create(body, at, type.getElementType(), by);
        Value result = arith::DivFOp::create(body, at, values[0], by);
        if (what.zeros) {
          Value zero = arith::ConstantOp::create(body, at, body.getFloatAttr(type.getElementType(), 0));
          auto [whereTrue, whereFalse] = what.zeros->zeroWhere ? std::pair(zero, result) : std::pair(result, zero);
          // A sum of exponentials is positive unless it is NaN. If a tile walks counted blocks, none of which counts in
          // this row, the sum is zero.
          Value condition =
              what.zeros->test ? arith::CmpFOp::create(body, at, arith::CmpFPredicate::ULE, by, zero) : values[2];
          result = arith::SelectOp::create(body, at, condition, whereTrue, whereFalse);
        }
        linalg::YieldOp::create(body, at, result);
      });
  setForm(quotient, tile::Form::deferredDivision);
  product.replaceAllUsesExcept(quotient.getResult(0), quotient);
  if (what.zeros)
    bypass(what.zeros->choice, what.zeros->chosen);
  bypass(division, what.divided);
  if (areForBf16(what.divided, what.divisor, quotient))
    markForBf16(what.divided);
}

class DeferNormalization : public FormPass<impl::DeferNormalizationBase<DeferNormalization>> {
  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> contractions;
    getOperation().walk([&](linalg::LinalgOp op) { contractions.push_back(op); });
    for (linalg::LinalgOp op : contractions) {
      FailureOr<TensorExpr> expr = describe(op);
      if (failed(expr) || expr->kind != ExprKind::contraction || !whyNoSumOfProducts(*expr).empty())
        continue;
      for (const TensorAccess &access : expr->inputs) {
        std::optional<Deferral> what = match(*expr, access);
        if (!what)
          continue;
        FailureOr<FormChoice> choice = settle(decideDeferral(*what), op.getOperation(), takesNoParameters);
        if (failed(choice))
          return;
        if (!choice->taken)
          continue;
        defer(*what);
        break;
      }
    }
  }
};
} // namespace
} // namespace tilewright
