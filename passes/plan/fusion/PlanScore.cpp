#include "passes/plan/fusion/PlanScore.h"

#include "passes/graph/Eligibility.h"
#include "passes/plan/space/Work.h"
#include <cmath>
#include <tuple>

using namespace mlir;
using namespace tilewright;

bool PlanScore::isBetterThan(const PlanScore &other) const {
  if (std::abs(seconds - other.seconds) > kTie * std::max(seconds, other.seconds))
    return seconds < other.seconds;
  return std::tie(bytes, launches) < std::tie(other.bytes, other.launches);
}

namespace {
class Scorer {
public:
  explicit Scorer(const FusionProblem &problem) : problem(problem) {}

  void add(const KernelPlan &kernel) {
    for (const CostTerm &term : kernel.predicted) {
      if (term.name == "seconds")
        score.seconds += term.value;
      else if (term.name == "bytes")
        score.bytes += term.value;
    }
    ++score.launches;
  }

  /// Adds a dispatch of IREE. If no kernel of Tilewright can compute it, its ops are priced one by one.
  void addDispatch(ArrayRef<unsigned> exprs) {
    if (llvm::all_of(exprs, [&](unsigned expr) { return isView(problem.graph.exprs()[expr]); }))
      return;
    EqualGroup group = planEqualGroup(problem.groups, exprs);
    if (group.planned) {
      score.seconds += group.planned->predicted.seconds;
      score.bytes += group.planned->predicted.bytes;
      ++score.launches;
      return;
    }
    for (unsigned expr : exprs)
      if (exprs.size() > 1)
        addDispatch({expr});
  }

  PlanScore score;

private:
  const FusionProblem &problem;
};
} // namespace

PlanScore tilewright::scoreOf(const FusionProblem &problem, const Plan &plan, ArrayRef<unsigned> mayTake) {
  Scorer scorer(problem);
  for (const KernelPlan &kernel : plan.kernels)
    scorer.add(kernel);
  SmallVector<unsigned> left;
  for (const LeftOp &op : plan.left)
    if (llvm::binary_search(mayTake, op.id))
      left.push_back(op.id);
  llvm::sort(left);
  for (ArrayRef<unsigned> dispatch : dispatchesOfIree(problem.graph, left))
    scorer.addDispatch(dispatch);
  return scorer.score;
}
