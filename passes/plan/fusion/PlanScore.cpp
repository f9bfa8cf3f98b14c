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

  void add(const Prediction &kernel) {
    score.seconds += kernel.seconds;
    score.bytes += kernel.bytes;
    ++score.launches;
  }

  /// Adds a dispatch of IREE. If no kernel of Tilewright can compute it, its ops are priced one by one.
  void addDispatch(ArrayRef<unsigned> exprs) {
    if (llvm::all_of(exprs, [&](unsigned expr) { return isView(problem.graph.exprs()[expr]); }))
      return;
    EqualGroup group = planEqualGroup(problem.groups, exprs);
    if (group.planned)
      return add(group.planned->predicted);
    for (unsigned expr : exprs)
      if (exprs.size() > 1)
        addDispatch({expr});
  }

  PlanScore score;

private:
  const FusionProblem &problem;
};
} // namespace

PlanScore tilewright::scoreOf(const FusionProblem &problem, const PlanDraft &plan, ArrayRef<unsigned> mayTake) {
  Scorer scorer(problem);
  for (ArrayRef<unsigned> kernel : plan.decisions.kernels)
    scorer.add(predictionOf(problem.graph, plan.decisions, kernel, problem.machine));
  SmallVector<unsigned> left;
  for (unsigned expr : mayTake)
    if (plan.decisions.partOf[expr] < 0)
      left.push_back(expr);
  for (ArrayRef<unsigned> dispatch : dispatchesOfIree(problem.graph, left))
    scorer.addDispatch(dispatch);
  return scorer.score;
}
