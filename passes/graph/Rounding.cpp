// The users of a value decide whether it may stay unrounded: arithmetic tolerates a more accurate operand, while
// comparisons of two values, conversions to integers and accumulated extrema do not.
#include "passes/graph/Rounding.h"

#include "dialects/tile/TileDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tilewright;

bool tilewright::isNarrowFloat(Type type) { return type.isBF16() || type.isF16(); }

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

std::optional<vector::CombiningKind> tilewright::combiningKind(BlockArgument arg, Value yielded) {
  Operation *op = yielded.getDefiningOp();
  if (!op || op->getNumOperands() != 2 || !arg.hasOneUse() || !llvm::is_contained(op->getOperands(), Value(arg)) ||
      !yielded.hasOneUse())
    return std::nullopt;
  using Kind = vector::CombiningKind;
  return llvm::TypeSwitch<Operation *, std::optional<Kind>>(op)
      .Case<arith::AddFOp, arith::AddIOp>([](auto) { return Kind::ADD; })
      .Case<arith::MulFOp, arith::MulIOp>([](auto) { return Kind::MUL; })
      .Case<arith::MaximumFOp>([](auto) { return Kind::MAXIMUMF; })
      .Case<arith::MinimumFOp>([](auto) { return Kind::MINIMUMF; })
      .Case<arith::MaxNumFOp>([](auto) { return Kind::MAXNUMF; })
      .Case<arith::MinNumFOp>([](auto) { return Kind::MINNUMF; })
      .Case<arith::MaxSIOp>([](auto) { return Kind::MAXSI; })
      .Case<arith::MinSIOp>([](auto) { return Kind::MINSI; })
      .Case<arith::MaxUIOp>([](auto) { return Kind::MAXUI; })
      .Case<arith::MinUIOp>([](auto) { return Kind::MINUI; })
      .Case<arith::AndIOp>([](auto) { return Kind::AND; })
      .Case<arith::OrIOp>([](auto) { return Kind::OR; })
      .Case<arith::XOrIOp>([](auto) { return Kind::XOR; })
      .Default([](auto) { return std::nullopt; });
}

bool tilewright::isSumOrProduct(std::optional<vector::CombiningKind> kind) {
  return kind == vector::CombiningKind::ADD || kind == vector::CombiningKind::MUL;
}

/// Returns the arguments of a body that hold accumulated values.
static Block::BlockArgListType accumulators(Block &body) {
  Operation *op = body.getParentOp();
  bool reduces = false;
  if (auto structured = dyn_cast<linalg::LinalgOp>(op))
    reduces = structured.getNumReductionLoops() > 0;
  else if (auto expr = dyn_cast<tile::ExprOp>(op))
    reduces = expr.isReduction();
  return body.getArguments().take_back(reduces ? op->getNumResults() : 0);
}

SmallVector<std::optional<vector::CombiningKind>> tilewright::combiningKinds(const TensorExpr &expr) {
  Block &body = expr.op->getRegion(0).front();
  return llvm::map_to_vector(llvm::zip(accumulators(body), body.getTerminator()->getOperands()),
                             [](auto pair) { return combiningKind(std::get<0>(pair), std::get<1>(pair)); });
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

BlockArgument tilewright::elementOf(const TensorExpr &expr, unsigned input) {
  if (expr.inputs[input].gathered)
    return {};
  if (isa<linalg::LinalgOp>(expr.op))
    return expr.op->getRegion(0).front().getArgument(expr.inputs[input].operand);
  if (auto existing = dyn_cast<tile::ExprOp>(expr.op))
    return existing.getBodyBlock().getArgument(input);
  return {};
}

bool tilewright::computesNarrow(Operation *op) {
  bool arithmetic = isa_and_nonnull<arith::ArithDialect, math::MathDialect>(op->getDialect());
  if (!arithmetic || op->hasTrait<OpTrait::ConstantLike>() ||
      isa<arith::SelectOp, arith::ExtFOp, arith::TruncFOp, arith::BitcastOp>(op))
    return false;
  return llvm::any_of(op->getOperandTypes(), isNarrowFloat) || llvm::any_of(op->getResultTypes(), isNarrowFloat);
}

bool tilewright::isExact(Operation *op) {
  return isa<arith::NegFOp, arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp, math::AbsFOp,
             math::CopySignOp, math::FloorOp, math::CeilOp, math::TruncOp, math::RoundOp, math::RoundEvenOp>(op);
}

/// Returns true for a comparison of one value with a number, or a test for NaN.
static bool toleratesUnrounded(arith::CmpFOp compare) {
  using Predicate = arith::CmpFPredicate;
  Predicate predicate = compare.getPredicate();
  if (predicate == Predicate::UNO || predicate == Predicate::ORD)
    return true;
  bool equality = llvm::is_contained({Predicate::OEQ, Predicate::ONE, Predicate::UEQ, Predicate::UNE}, predicate);
  auto isNumber = [](Value value) {
    if (auto extended = value.getDefiningOp<arith::ExtFOp>())
      value = extended.getIn();
    return matchPattern(value, m_Constant());
  };
  return !equality && (isNumber(compare.getLhs()) || isNumber(compare.getRhs()));
}

static bool roundsToInteger(Operation *op) {
  return isa<math::FloorOp, math::CeilOp, math::TruncOp, math::RoundOp, math::RoundEvenOp>(op);
}

static bool toleratesUnrounded(OpOperand &use) {
  Operation *op = use.getOwner();
  if (isa<arith::ExtFOp, arith::SelectOp>(op))
    return toleratesUnrounded(op->getResult(0));
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    return toleratesUnrounded(compare);
  if (isa<arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp>(op))
    return llvm::none_of(op->getOperands(),
                         [&](Value operand) { return llvm::is_contained(accumulators(*op->getBlock()), operand); });
  if (isa<math::MathDialect>(op->getDialect()))
    return !roundsToInteger(op);
  return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::NegFOp, arith::TruncFOp>(op);
}

bool tilewright::isRoundedToInteger(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return roundsToInteger(user) || isa<arith::FPToSIOp, arith::FPToUIOp>(user);
  });
}

bool tilewright::toleratesUnrounded(Value value) {
  return llvm::all_of(value.getUses(), [](OpOperand &use) { return ::toleratesUnrounded(use); });
}

int64_t tilewright::countAvoidableRoundings(Block &body) {
  int64_t count = 0;
  for (Operation &op : body) {
    bool rounds = (computesNarrow(&op) && !isExact(&op)) || isa<arith::TruncFOp>(op);
    if (!rounds || !isNarrowFloat(op.getResult(0).getType()))
      continue;
    auto computes = [](OpOperand &use) { return computesNarrow(use.getOwner()) || isa<arith::ExtFOp>(use.getOwner()); };
    auto readers = llvm::make_filter_range(op.getResult(0).getUses(), computes);
    count += !readers.empty() && llvm::all_of(readers, [](OpOperand &use) { return ::toleratesUnrounded(use); });
  }
  return count;
}
