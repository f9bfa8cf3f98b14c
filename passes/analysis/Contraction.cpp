#include "passes/analysis/Contraction.h"

#include "dialects/tile/TileDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace tilewright;

/// The body argument that a value is, at most widened.
static BlockArgument argumentOf(Value value) {
  if (auto widened = value.getDefiningOp<arith::ExtFOp>())
    value = widened.getIn();
  return dyn_cast<BlockArgument>(value);
}

static Block &bodyOf(const TensorExpr &expr) {
  if (auto structured = dyn_cast<linalg::LinalgOp>(expr.op))
    return *structured.getBlock();
  return cast<tile::ExprOp>(expr.op).getBodyBlock();
}

std::string tilewright::whyNoSumOfProducts(const TensorExpr &expr) {
  if (expr.inputs.size() != 2 || expr.op->getNumResults() != 1)
    return "it has an input besides the two that it multiplies";
  if (llvm::any_of(expr.inputs, [](const TensorAccess &access) { return access.guard != IntegerSet(); }))
    return "it reads its inputs under a guard";
  Block &body = bodyOf(expr);
  Value yielded = body.getTerminator()->getOperand(0);
  auto sum = yielded.getDefiningOp<arith::AddFOp>();
  if (!sum)
    return "it does not sum floats";
  for (auto [accumulator, term] : {std::pair(sum.getLhs(), sum.getRhs()), std::pair(sum.getRhs(), sum.getLhs())}) {
    auto product = term.getDefiningOp<arith::MulFOp>();
    auto carried = dyn_cast<BlockArgument>(accumulator);
    if (!product || !carried || carried.getArgNumber() != 2)
      continue;
    BlockArgument left = argumentOf(product.getLhs()), right = argumentOf(product.getRhs());
    if (!left || !right || left == right || left == carried || right == carried)
      continue;
    if (yielded.getType().getIntOrFloatBitWidth() < 32)
      return "it accumulates in a type of less than 32 bits";
    return "";
  }
  return "it is no sum of products";
}

std::optional<ContractionRoles> tilewright::contractionRoles(const TensorExpr &expr, AffineMap first,
                                                             AffineMap second) {
  int64_t lane = -1;
  for (AffineExpr index : llvm::reverse(expr.results[0].getResults())) {
    auto dim = dyn_cast<AffineDimExpr>(index);
    if (!dim || expr.domain[dim.getPosition()] == 1)
      continue;
    lane = dim.getPosition();
    break;
  }
  if (lane < 0 || first.isFunctionOfDim(lane) == second.isFunctionOfDim(lane))
    return std::nullopt;
  bool swapped = first.isFunctionOfDim(lane);
  AffineMap rows = swapped ? second : first, lanes = swapped ? first : second;
  ContractionRoles roles{swapped ? 1u : 0u, swapped ? 0u : 1u, -1, lane};
  for (int64_t dim = 0; dim < static_cast<int64_t>(expr.domain.size()); ++dim)
    if (dim != lane && !llvm::is_contained(expr.reductions, dim) && rows.isFunctionOfDim(dim) &&
        !lanes.isFunctionOfDim(dim) && expr.domain[dim] > 1 &&
        (roles.row < 0 || expr.domain[dim] >= expr.domain[roles.row]))
      roles.row = dim;
  return roles;
}
