// Matches bodies of the form acc + a * b, where both operands may be widened, and derives the roles of the dims from
// the accesses that depend on them.
#include "passes/graph/Contraction.h"

#include "dialects/tile/TileDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "passes/support/SpellType.h"

using namespace mlir;
using namespace tilewright;

/// Stores an operand as it was before it was widened.
static void setOperand(SumOfProducts &found, unsigned i, Value operand) {
  Operation *op = operand.getDefiningOp();
  found.operands[i] = operand;
  found.widening[i] = isa_and_nonnull<arith::ExtFOp, arith::ExtSIOp, arith::ExtUIOp>(op) ? op : nullptr;
  if (found.widening[i])
    found.operands[i] = op->getOperand(0);
  std::string type = spell(found.operands[i].getType());
  if (isa_and_nonnull<arith::ExtSIOp>(op))
    type = "s" + type;
  if (isa_and_nonnull<arith::ExtUIOp>(op))
    type = "u" + type;
  found.types[i] = type;
}

static std::string whyNotThese(const SumOfProducts &found) {
  Type sum = found.sum->getResult(0).getType();
  if (isa<FloatType>(sum))
    return sum.getIntOrFloatBitWidth() < 32 ? "it accumulates in a type of less than 32 bits" : "";
  auto isByte = [](StringRef type) { return type == "si8" || type == "ui8"; };
  return sum.isInteger(32) && isByte(found.types[0]) && isByte(found.types[1])
             ? ""
             : "it multiplies integers other than i8 with i32 accumulators";
}

std::optional<SumOfProducts> tilewright::matchSumOfProducts(Value yielded, Value accumulator, std::string *reason) {
  auto refuse = [&](std::string why) -> std::optional<SumOfProducts> {
    if (reason)
      *reason = std::move(why);
    return std::nullopt;
  };
  Operation *sum = yielded.getDefiningOp();
  if (!isa_and_nonnull<arith::AddFOp, arith::AddIOp>(sum))
    return refuse("it does not sum numbers");
  for (unsigned i : {0, 1}) {
    Operation *product = sum->getOperand(1 - i).getDefiningOp();
    if (sum->getOperand(i) != accumulator || !isa_and_nonnull<arith::MulFOp, arith::MulIOp>(product))
      continue;
    SumOfProducts found{sum, product, {}, {}, {}, spell(yielded.getType())};
    setOperand(found, 0, product->getOperand(0));
    setOperand(found, 1, product->getOperand(1));
    if (std::string why = whyNotThese(found); !why.empty())
      return refuse(why);
    return found;
  }
  return refuse("it is not a sum of products");
}

static std::optional<SumOfProducts> matchBody(const TensorExpr &expr, std::string *reason = nullptr) {
  return matchSumOfProducts(expr.body()->getTerminator()->getOperand(0), expr.body()->getArgument(2), reason);
}

bool tilewright::addsPlainProducts(Block &body) {
  if (body.getNumArguments() != 3 || body.getTerminator()->getNumOperands() != 1)
    return false;
  auto found = matchSumOfProducts(body.getTerminator()->getOperand(0), body.getArgument(2));
  if (!found || found->widening[0] || found->widening[1])
    return false;
  Value first = body.getArgument(0), second = body.getArgument(1), *read = found->operands;
  return (read[0] == first && read[1] == second) || (read[0] == second && read[1] == first);
}

std::string tilewright::whyNoSumOfProducts(const TensorExpr &expr) {
  if (expr.inputs.size() != 2 || expr.op->getNumResults() != 1)
    return "it has an input besides the two that it multiplies";
  std::string reason;
  std::optional<SumOfProducts> found = matchBody(expr, &reason);
  if (!found)
    return reason;
  for (Value operand : found->operands)
    if (auto argument = dyn_cast<BlockArgument>(operand); !argument || argument.getArgNumber() == 2)
      return "it is not a sum of products";
  return found->operands[0] == found->operands[1] ? "it is not a sum of products" : "";
}

ProductTypes tilewright::productTypes(const TensorExpr &expr, const ContractionRoles &roles) {
  std::optional<SumOfProducts> found = matchBody(expr);
  assert(found && "not a contraction of a register block");
  unsigned lhsArgument = isa<linalg::LinalgOp>(expr.op) ? expr.inputs[roles.lhsInput].operand : roles.lhsInput;
  bool lhsFirst = cast<BlockArgument>(found->operands[0]).getArgNumber() == lhsArgument;
  return found->productTypes(lhsFirst ? 0 : 1);
}

std::optional<ContractionRoles> tilewright::contractionRoles(const TensorExpr &expr, AffineMap first,
                                                             AffineMap second) {
  int64_t n = -1;
  for (AffineExpr index : llvm::reverse(expr.results[0].getResults())) {
    auto dim = dyn_cast<AffineDimExpr>(index);
    if (!dim || expr.domain[dim.getPosition()] == 1)
      continue;
    n = dim.getPosition();
    break;
  }
  if (n < 0 || first.isFunctionOfDim(n) == second.isFunctionOfDim(n))
    return std::nullopt;
  bool swapped = first.isFunctionOfDim(n);
  AffineMap lhs = swapped ? second : first, rhs = swapped ? first : second;
  ContractionRoles roles{swapped ? 1u : 0u, swapped ? 0u : 1u, -1, n};
  for (int64_t dim = 0; dim < static_cast<int64_t>(expr.domain.size()); ++dim)
    if (dim != n && !llvm::is_contained(expr.reductions, dim) && lhs.isFunctionOfDim(dim) &&
        !rhs.isFunctionOfDim(dim) && expr.domain[dim] > 1 && (roles.m < 0 || expr.domain[dim] >= expr.domain[roles.m]))
      roles.m = dim;
  return roles;
}

std::optional<PackedK> tilewright::packedK(AffineMap rhs, ArrayRef<int64_t> shape, int64_t n, ArrayRef<int64_t> extents,
                                           llvm::function_ref<bool(int64_t)> isReduced) {
  if (rhs.getNumResults() < 2 || !rhs.getResult(rhs.getNumResults() - 2).isFunctionOfDim(n))
    return std::nullopt;
  AffineExpr index = rhs.getResults().back();
  int64_t depth = shape.back();
  if (depth != 2 && depth != 4)
    return std::nullopt;
  // If one step takes all of K, or K is 1, the division of the dim has been simplified away.
  if (auto constant = dyn_cast<AffineConstantExpr>(index))
    return constant.getValue() == 0 ? std::optional(PackedK{-1, depth}) : std::nullopt;
  auto cut = dyn_cast<AffineBinaryOpExpr>(index);
  bool isCut = cut && index.getKind() == AffineExprKind::Mod && cut.getRHS() == depth;
  auto dim = dyn_cast<AffineDimExpr>(isCut ? cut.getLHS() : index);
  if (!dim || !isReduced(dim.getPosition()) || (!isCut && extents[dim.getPosition()] > depth))
    return std::nullopt;
  return PackedK{dim.getPosition(), depth};
}
