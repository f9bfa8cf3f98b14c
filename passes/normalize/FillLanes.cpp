#include "passes/normalize/FillLanes.h"

#include "passes/graph/ConstantOperand.h"
#include "passes/graph/Contraction.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// Returns true if N is small and K is long and contiguous in lhs, in f32, for which a micro kernel's step covers one
/// K.
bool hasFewLanes(const TensorExpr &expr, const ContractionRoles &roles, const SumOfProducts &sum,
                 const CpuCosts &costs) {
  if (roles.m < 0 || expr.domain[roles.n] > costs.fewColumns || expr.reductions.size() != 1 ||
      !llvm::all_of(sum.types, [](const std::string &type) { return type == "f32"; }))
    return false;
  int64_t k = expr.reductions[0];
  AffineMap lhs = expr.inputs[roles.lhsInput].map;
  return expr.domain[k] >= costs.manyK && lhs.getResults().back() == getAffineDimExpr(k, lhs.getContext());
}
} // namespace

/// Returns the products that a contraction sums up, or nothing for other ops and for those of weights alone.
static std::optional<SumOfProducts> productsOf(const TensorExpr &expr, bool isAtLoad) {
  auto op = dyn_cast<linalg::LinalgOp>(expr.op);
  if (expr.kind != ExprKind::contraction || !op || !linalg::isaContractionOpInterface(op) || isAtLoad)
    return std::nullopt;
  Block &body = *op.getBlock();
  return matchSumOfProducts(body.getTerminator()->getOperand(0), body.getArgument(2));
}

bool tilewright::hasNoColumns(const TensorGraph &graph, const std::vector<bool> &atLoad, unsigned id,
                              const CpuCosts &costs) {
  const TensorExpr &expr = graph.exprs()[id];
  return productsOf(expr, atLoad[id]) && !contractionRoles(expr, expr.inputs[0].map, expr.inputs[1].map) &&
         !lanesElsewhere(cast<linalg::LinalgOp>(expr.op), costs);
}

AlongLanes tilewright::whatLiesAlongLanes(const TensorGraph &graph, const std::vector<bool> &atLoad, unsigned id,
                                          const CpuCosts &costs) {
  const TensorExpr &expr = graph.exprs()[id];
  std::optional<SumOfProducts> sum = productsOf(expr, atLoad[id]);
  if (!sum)
    return AlongLanes::much;
  std::optional<ContractionRoles> roles = contractionRoles(expr, expr.inputs[0].map, expr.inputs[1].map);
  if (roles && hasFewLanes(expr, *roles, *sum, costs))
    return AlongLanes::few;
  if (!roles || roles->m >= 0 || hasConstantLanes(graph, atLoad, id, *roles))
    return roles ? AlongLanes::much : AlongLanes::nothing;
  const TensorAccess &rhs = expr.inputs[roles->rhsInput];
  ArrayRef<int64_t> shape = cast<RankedTensorType>(rhs.tensor.getType()).getShape();
  for (auto [index, size] : llvm::reverse(llvm::zip_equal(rhs.map.getResults(), shape)))
    if (size > 1)
      return index.isFunctionOfDim(roles->n) ? AlongLanes::much : AlongLanes::nothing;
  return AlongLanes::much;
}

std::optional<unsigned> tilewright::lanesElsewhere(linalg::LinalgOp op, const CpuCosts &costs) {
  FailureOr<linalg::ContractionDimensions> dims = linalg::inferContractionDims(op);
  if (failed(dims) || dims->m.empty() || dims->n.empty() || !op.getDpsInits()[0].getDefiningOp<linalg::FillOp>())
    return std::nullopt;
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  auto innermost = [&](unsigned input) {
    AffineMap map = op.getIndexingMapsArray()[input];
    auto last = map.getNumResults() > 0 ? dyn_cast<AffineDimExpr>(map.getResults().back()) : AffineDimExpr(nullptr);
    return last ? int64_t(last.getPosition()) : -1;
  };
  std::optional<unsigned> best;
  auto rank = [&](unsigned dim) { return std::pair(dim == innermost(0) || dim == innermost(1), sizes[dim]); };
  for (unsigned dim : llvm::concat<unsigned>(dims->m, dims->n))
    if (sizes[dim] >= costs.fullLanes && (!best || rank(*best) < rank(dim)))
      best = dim;
  return best;
}

static Value emptyTensor(OpBuilder &builder, Location loc, ArrayRef<int64_t> shape, Type element) {
  return tensor::EmptyOp::create(builder, loc, shape, element);
}

linalg::LinalgOp tilewright::alongK(linalg::LinalgOp op) {
  OpBuilder builder(op);
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  SmallVector<Value> operands = op.getDpsInputs();
  SmallVector<unsigned> reduced;
  op.getReductionDims(reduced);
  for (unsigned input : {0, 1}) {
    SmallVector<int64_t> order, last;
    for (auto [position, index] : llvm::enumerate(maps[input].getResults()))
      (index.isFunctionOfDim(reduced.front()) ? last : order).push_back(position);
    llvm::append_range(order, last);
    if (llvm::is_sorted(order))
      continue;
    auto type = cast<RankedTensorType>(operands[input].getType());
    Value init = emptyTensor(builder, op.getLoc(), applyPermutation(type.getShape(), order), type.getElementType());
    operands[input] = linalg::TransposeOp::create(builder, op.getLoc(), operands[input], init, order)->getResult(0);
    maps[input] = maps[input].getSubMap(SmallVector<unsigned>(order.begin(), order.end()));
  }
  auto generic = linalg::GenericOp::create(builder, op.getLoc(), op->getResultTypes(), operands, op.getDpsInits(), maps,
                                           op.getIteratorTypesArray());
  generic.getRegion().takeBody(op->getRegion(0));
  op->replaceAllUsesWith(generic.getResults());
  op->erase();
  return generic;
}

void tilewright::turnResult(linalg::LinalgOp op, unsigned lane) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  SmallVector<int64_t> order, last;
  for (auto [position, index] : llvm::enumerate(maps[2].getResults()))
    (index.isFunctionOfDim(lane) ? last : order).push_back(position);
  llvm::append_range(order, last);
  maps[2] = maps[2].getSubMap(SmallVector<unsigned>(order.begin(), order.end()));
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  auto fill = op.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  Value empty = emptyTensor(builder, loc, applyPermutation(type.getShape(), order), type.getElementType());
  Value start = linalg::FillOp::create(builder, fill.getLoc(), fill.getInputs(), ValueRange(empty)).getResult(0);
  auto contraction = linalg::GenericOp::create(builder, loc, TypeRange(start.getType()), op.getDpsInputs(), start, maps,
                                               op.getIteratorTypesArray());
  contraction.getRegion().takeBody(op->getRegion(0));
  Value init = emptyTensor(builder, loc, type.getShape(), type.getElementType());
  Operation *transposed =
      linalg::TransposeOp::create(builder, loc, contraction.getResult(0), init, invertPermutationVector(order));
  op->replaceAllUsesWith(transposed->getResults());
  op->erase();
}
