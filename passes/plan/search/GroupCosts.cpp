#include "passes/plan/search/GroupCosts.h"

#include "passes/graph/Eligibility.h"
#include "passes/plan/search/KernelLimits.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tilewright;

/// Contractions from which on the time to plan a group grows with their number: each has its block planned for every
/// tiling of the group.
static constexpr int64_t kFewContractions = 4;

const CostedGroup &GroupCosts::of(const ExprSet &set) {
  auto found = known.find(set);
  if (found != known.end())
    return found->second;
  CostedGroup group{set, set.members()};
  predict(group);
  return known.try_emplace(set, std::move(group)).first->second;
}

void GroupCosts::predict(CostedGroup &group) {
  const TensorGraph &graph = problem.graph;
  auto exprOf = [&](unsigned expr) -> const TensorExpr & { return graph.exprs()[expr]; };
  group.isView = llvm::all_of(group.exprs, [&](unsigned expr) { return isView(exprOf(expr)); });
  int64_t contractions =
      llvm::count_if(group.exprs, [&](unsigned expr) { return exprOf(expr).kind == ExprKind::contraction; });
  group.contracts = contractions > 0;
  auto decline = [&](Declined why) {
    group.seconds = std::numeric_limits<double>::infinity();
    group.why = std::move(why);
  };
  if (group.exprs.size() > 1 && llvm::any_of(group.exprs, keepsApart))
    return decline({kUnfused.str(), "a fix for the pass that failed"});
  if (group.isView)
    return;
  if (std::optional<Declined> why = whyTooLarge(graph, group.exprs); why && group.exprs.size() > 1)
    return decline(std::move(*why));
  EqualGroup equal = planEqualGroup(problem, group.exprs);
  if (signatures.insert(equal.signature).second)
    planned += group.exprs.size() * llvm::divideCeil(std::max<int64_t>(1, contractions), kFewContractions);
  if (!equal.planned)
    return decline(equal.planned.why());
  const Prediction &predicted = equal.planned->predicted;
  group.seconds = predicted.seconds;
  group.bytes = predicted.bytes;
  group.isComputeBound = boundOf(predicted.resources(problem.target)) == kArithmetic;
  group.tiles = equal.planned->space.numTiles();
  group.inRegisters = llvm::all_of(equal.planned->choice.scopes,
                                   [](const auto &entry) { return entry.second == tile::Scope::thread; });
}
