// Starts from the yielded sum of products, requires both operands to be loads, and derives the roles of the dims from
// the maps of those loads.
#include "passes/graph/MatchContraction.h"

#include "passes/graph/Contraction.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

/// Returns the load that an operand comes from, possibly widened after it.
static LoadOp loadOf(Value operand, OperandGuards guards) {
  auto load = operand.getDefiningOp<LoadOp>();
  return load && (guards == OperandGuards::allowed || !load.getGuard()) ? load : LoadOp();
}

std::optional<Contraction> tilewright::matchContraction(ComputeOp compute, OperandGuards guards) {
  Block &body = compute.getBodyBlock();
  int64_t n = compute.getVector();
  if (compute.getAccs().size() != 1 || n < 0 || compute.isReduced(n) || compute.getReductions().empty())
    return std::nullopt;
  std::optional<SumOfProducts> sum =
      matchSumOfProducts(cast<YieldOp>(body.getTerminator()).getValues()[0], body.getArgument(0));
  if (!sum || !sum->product->hasOneUse() || !sum->sum->hasOneUse())
    return std::nullopt;
  LoadOp loads[] = {loadOf(sum->operands[0], guards), loadOf(sum->operands[1], guards)};
  if (!loads[0] || !loads[1] || loads[0] == loads[1])
    return std::nullopt;
  // The body must do nothing else: no stores, no further results.
  SmallVector<Operation *> known = {sum->sum, sum->product, loads[0], loads[1], sum->widening[0], sum->widening[1]};
  if (llvm::any_of(body.without_terminator(), [&](Operation &op) { return !llvm::is_contained(known, &op); }))
    return std::nullopt;
  bool firstAlong = loads[0].getMap().isFunctionOfDim(n);
  if (firstAlong == loads[1].getMap().isFunctionOfDim(n))
    return std::nullopt;
  unsigned lhs = firstAlong ? 1 : 0, rhs = 1 - lhs;
  Contraction found{loads[lhs],         loads[rhs],        -1, n, {}, {}, sum->productTypes(lhs),
                    sum->widening[lhs], sum->widening[rhs]};
  for (int64_t dim = 0; dim < static_cast<int64_t>(compute.getSizes().size()); ++dim) {
    bool changesLhs = found.lhs.getMap().isFunctionOfDim(dim), changesRhs = found.rhs.getMap().isFunctionOfDim(dim);
    if (compute.isReduced(dim))
      found.reduced.push_back(dim);
    else if (dim != n && changesLhs && !changesRhs &&
             (found.m < 0 || compute.getSizes()[dim] >= compute.getSizes()[found.m]))
      found.m = dim;
  }
  for (int64_t dim = 0; dim < static_cast<int64_t>(compute.getSizes().size()); ++dim)
    if (!compute.isReduced(dim) && dim != n && dim != found.m)
      found.batch.push_back(dim);
  return found;
}
