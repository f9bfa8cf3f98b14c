// Starts from the yielded sum of products, requires both operands to be loads, and derives the roles of the dims from
// the maps of those loads.
#include "passes/graph/MatchContraction.h"

#include "passes/graph/Contraction.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

/// Returns the unguarded load that an operand comes from, possibly widened after it.
static LoadOp loadOf(Value factor) {
  auto load = factor.getDefiningOp<LoadOp>();
  return load && !load.getGuard() ? load : LoadOp();
}

std::optional<Contraction> tilewright::matchContraction(ComputeOp compute) {
  Block &body = compute.getBodyBlock();
  int64_t lane = compute.getVector();
  if (compute.getAccs().size() != 1 || lane < 0 || compute.isReduced(lane) || compute.getReductions().empty())
    return std::nullopt;
  std::optional<SumOfProducts> sum =
      matchSumOfProducts(cast<YieldOp>(body.getTerminator()).getValues()[0], body.getArgument(0));
  if (!sum || !sum->product->hasOneUse() || !sum->sum->hasOneUse())
    return std::nullopt;
  LoadOp loads[] = {loadOf(sum->factors[0]), loadOf(sum->factors[1])};
  if (!loads[0] || !loads[1] || loads[0] == loads[1])
    return std::nullopt;
  // The body must do nothing else: no stores, no further results.
  SmallVector<Operation *> known = {sum->sum, sum->product, loads[0], loads[1], sum->widening[0], sum->widening[1]};
  if (llvm::any_of(body.without_terminator(), [&](Operation &op) { return !llvm::is_contained(known, &op); }))
    return std::nullopt;
  bool firstAlong = loads[0].getMap().isFunctionOfDim(lane);
  if (firstAlong == loads[1].getMap().isFunctionOfDim(lane))
    return std::nullopt;
  unsigned rows = firstAlong ? 1 : 0, lanes = 1 - rows;
  Contraction found{loads[rows],         loads[lanes],        -1, lane, {}, {}, sum->productTypes(rows),
                    sum->widening[rows], sum->widening[lanes]};
  for (int64_t dim = 0; dim < static_cast<int64_t>(compute.getSizes().size()); ++dim) {
    bool changesRows = found.rows.getMap().isFunctionOfDim(dim),
         changesLanes = found.lanes.getMap().isFunctionOfDim(dim);
    if (compute.isReduced(dim))
      found.reduced.push_back(dim);
    else if (dim != lane && changesRows && !changesLanes &&
             (found.row < 0 || compute.getSizes()[dim] >= compute.getSizes()[found.row]))
      found.row = dim;
  }
  for (int64_t dim = 0; dim < static_cast<int64_t>(compute.getSizes().size()); ++dim)
    if (!compute.isReduced(dim) && dim != lane && dim != found.row)
      found.batch.push_back(dim);
  return found;
}
