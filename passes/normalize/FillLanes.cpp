#include "passes/normalize/FillLanes.h"

#include "passes/graph/Contraction.h"
#include "passes/graph/ConstantOperand.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// Columns of a matrix that leave most lanes of a register block empty, and terms that fill them instead. 512 rows of
/// 768 terms, one core of a Zen 4, in a register block and as a reduction: by 2 columns 115 and 52 us, by 3 116 and 66,
/// by 4 126 and 105, by 8 115 and 144.
constexpr int64_t kFewColumns = 3, kManyK = 64;

/// Points of a dim that are worth to turn the result for.
constexpr int64_t kFullLanes = 8;

/// Whether few lanes are multiplied with rows that lie along many terms, in f32, of which a step takes one.
bool hasFewLanes(const TensorExpr &expr, const ContractionRoles &roles, const SumOfProducts &sum) {
  if (roles.row < 0 || expr.domain[roles.lane] > kFewColumns || expr.reductions.size() != 1 ||
      !llvm::all_of(sum.types, [](const std::string &type) { return type == "f32"; }))
    return false;
  int64_t terms = expr.reductions[0];
  AffineMap rows = expr.inputs[roles.rowInput].map;
  return expr.domain[terms] >= kManyK && rows.getResults().back() == getAffineDimExpr(terms, rows.getContext());
}
} // namespace

AlongLanes tilewright::whatLiesAlongLanes(const TensorGraph &graph, const std::vector<bool> &atLoad, unsigned id) {
  const TensorExpr &expr = graph.exprs()[id];
  auto op = dyn_cast<linalg::LinalgOp>(expr.op);
  if (expr.kind != ExprKind::contraction || !op || !linalg::isaContractionOpInterface(op) || atLoad[id])
    return AlongLanes::much;
  Block &body = *op.getBlock();
  std::optional<SumOfProducts> sum = matchSumOfProducts(body.getTerminator()->getOperand(0), body.getArgument(2));
  if (!sum)
    return AlongLanes::much;
  std::optional<ContractionRoles> roles = contractionRoles(expr, expr.inputs[0].map, expr.inputs[1].map);
  if (roles && hasFewLanes(expr, *roles, *sum))
    return AlongLanes::few;
  if (!roles || roles->row >= 0 || hasConstantLanes(graph, atLoad, id, *roles))
    return roles ? AlongLanes::much : AlongLanes::nothing;
  const TensorAccess &lanes = expr.inputs[roles->laneInput];
  ArrayRef<int64_t> shape = cast<RankedTensorType>(lanes.tensor.getType()).getShape();
  for (auto [index, size] : llvm::reverse(llvm::zip_equal(lanes.map.getResults(), shape)))
    if (size > 1)
      return index.isFunctionOfDim(roles->lane) ? AlongLanes::much : AlongLanes::nothing;
  return AlongLanes::much;
}

std::optional<unsigned> tilewright::lanesElsewhere(linalg::LinalgOp op) {
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
    if (sizes[dim] >= kFullLanes && (!best || rank(*best) < rank(dim)))
      best = dim;
  return best;
}

static Value emptyTensor(OpBuilder &builder, Location loc, ArrayRef<int64_t> shape, Type element) {
  return tensor::EmptyOp::create(builder, loc, shape, element);
}

linalg::LinalgOp tilewright::alongK(linalg::LinalgOp op) {
  OpBuilder builder(op);
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  SmallVector<Value> factors = op.getDpsInputs();
  SmallVector<unsigned> terms;
  op.getReductionDims(terms);
  for (unsigned input : {0, 1}) {
    SmallVector<int64_t> order, last;
    for (auto [place, index] : llvm::enumerate(maps[input].getResults()))
      (index.isFunctionOfDim(terms.front()) ? last : order).push_back(place);
    llvm::append_range(order, last);
    if (llvm::is_sorted(order))
      continue;
    auto type = cast<RankedTensorType>(factors[input].getType());
    Value turned = emptyTensor(builder, op.getLoc(), applyPermutation(type.getShape(), order), type.getElementType());
    factors[input] = linalg::TransposeOp::create(builder, op.getLoc(), factors[input], turned, order)->getResult(0);
    maps[input] = maps[input].getSubMap(SmallVector<unsigned>(order.begin(), order.end()));
  }
  auto generic = linalg::GenericOp::create(builder, op.getLoc(), op->getResultTypes(), factors, op.getDpsInits(), maps,
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
  for (auto [place, index] : llvm::enumerate(maps[2].getResults()))
    (index.isFunctionOfDim(lane) ? last : order).push_back(place);
  llvm::append_range(order, last);
  maps[2] = maps[2].getSubMap(SmallVector<unsigned>(order.begin(), order.end()));
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  auto fill = op.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  Value empty = emptyTensor(builder, loc, applyPermutation(type.getShape(), order), type.getElementType());
  Value start = linalg::FillOp::create(builder, fill.getLoc(), fill.getInputs(), ValueRange(empty)).getResult(0);
  auto sums = linalg::GenericOp::create(builder, loc, TypeRange(start.getType()), op.getDpsInputs(), start, maps,
                                        op.getIteratorTypesArray());
  sums.getRegion().takeBody(op->getRegion(0));
  Value place = emptyTensor(builder, loc, type.getShape(), type.getElementType());
  Operation *turned =
      linalg::TransposeOp::create(builder, loc, sums.getResult(0), place, invertPermutationVector(order));
  op->replaceAllUsesWith(turned->getResults());
  op->erase();
}
