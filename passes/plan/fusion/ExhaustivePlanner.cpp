// The exhaustive explorer. A partition into groups can be launched one kernel after another exactly if its groups can
// be put in an order in which every prefix is closed: it holds all expressions that its expressions depend on. So the
// least time of every closed set follows from those of its closed subsets, with the rest as the last group, and all
// partitions of n expressions are tried in 3^n steps at most.
#include "passes/plan/fusion/Explorers.h"

#include "passes/graph/Eligibility.h"
#include "passes/plan/fusion/PlannerStep.h"
#include "llvm/Support/FormatVariadic.h"
#include <limits>

using namespace mlir;
using namespace tilewright;

namespace {
/// A set of expressions, as bits.
using ExprSet = unsigned;

class Search {
public:
  Search(const FusionProblem &problem, const PlanDraft &start) : problem(problem) {
    for (auto [expr, group] : llvm::enumerate(start.decisions.partOf))
      if (group >= 0)
        exprs.push_back(expr);
    if (exprs.size() > kMostExhaustive)
      return; // too many for the bits of a set; nothing is searched then
    for (unsigned expr : exprs) {
      ExprSet own = 0;
      for (auto [number, other] : llvm::enumerate(exprs))
        own |= ExprSet(start.partition.reaches(start.partition.groupOf(other), start.partition.groupOf(expr)) &&
                       other != expr)
               << number;
      needs.push_back(own);
    }
  }

  size_t size() const { return exprs.size(); }

  /// Returns the groups of the fastest partition, in an order in which they can run; nothing if none has a time.
  std::optional<std::vector<SmallVector<unsigned>>> fastest() {
    ExprSet all = (ExprSet(1) << exprs.size()) - 1;
    std::vector<double> seconds(all + 1, std::numeric_limits<double>::infinity());
    std::vector<ExprSet> last(all + 1);
    seconds[0] = 0;
    for (ExprSet closed = 1; closed <= all; ++closed) {
      if (!isClosed(closed))
        continue;
      for (ExprSet group = closed; group != 0; group = (group - 1) & closed) {
        if (!isClosed(closed & ~group))
          continue;
        double together = seconds[closed & ~group] + secondsOf(group);
        if (together < seconds[closed]) {
          seconds[closed] = together;
          last[closed] = group;
        }
      }
    }
    if (seconds[all] == std::numeric_limits<double>::infinity())
      return std::nullopt;
    std::vector<SmallVector<unsigned>> groups;
    for (ExprSet rest = all; rest != 0; rest &= ~last[rest])
      groups.insert(groups.begin(), members(last[rest]));
    return groups;
  }

private:
  SmallVector<unsigned> members(ExprSet set) const {
    SmallVector<unsigned> found;
    for (auto [number, expr] : llvm::enumerate(exprs))
      if (set >> number & 1)
        found.push_back(expr);
    return found;
  }

  bool isClosed(ExprSet set) const {
    for (auto [number, own] : llvm::enumerate(needs))
      if (set >> number & 1 && (own & ~set) != 0)
        return false;
    return true;
  }

  /// Returns true if an op outside the group, such as one that stays with IREE, stands between two of its ops.
  bool isInterrupted(ArrayRef<unsigned> group) const {
    Partition partition(problem.graph, problem.block());
    partition.join(group);
    return !partition.order();
  }

  double predict(ArrayRef<unsigned> group) const {
    constexpr double kImpossible = std::numeric_limits<double>::infinity();
    if (llvm::all_of(group, [&](unsigned expr) { return isView(problem.graph.exprs()[expr]); }))
      return group.size() == 1 ? 0 : kImpossible; // a reshape is no kernel
    bool isApart = llvm::any_of(group, [&](unsigned expr) { return problem.restrictions.keepsApart(expr); });
    if (group.size() > 1 && (isApart || isInterrupted(group)))
      return kImpossible;
    OrDeclined<PlannedGroup> planned = planGroup(problem.groups, group);
    return planned ? planned->predicted.seconds : kImpossible;
  }

  double secondsOf(ExprSet group) {
    auto [known, isNew] = predictions.try_emplace(group);
    if (isNew)
      known->second = predict(members(group));
    return known->second;
  }

  const FusionProblem &problem;
  SmallVector<unsigned> exprs; ///< that Tilewright may compute
  SmallVector<ExprSet> needs;  ///< expressions that each one depends on, in any way
  llvm::DenseMap<ExprSet, double> predictions;
};

} // namespace

OrDeclined<PlanDraft> tilewright::exploreExhaustively(const FusionProblem &problem) {
  PlanDraft plan = runSteps(problem, {{"startGroups", startGroups}});
  Search search(problem, plan);
  if (search.size() > kMostExhaustive)
    return Declined{llvm::formatv("the policy tries all partitions of at most {0} ops; these are {1}", kMostExhaustive,
                                  search.size()),
                    "another policy"};
  std::optional<std::vector<SmallVector<unsigned>>> groups = search.fastest();
  if (!groups)
    return Declined{"no partition has a predicted time", "a target whose rates are positive"};
  plan = withGroups(problem, std::move(plan), SmallVector<ArrayRef<unsigned>>(groups->begin(), groups->end()));
  explainLaunches(problem.graph, plan.decisions, [](const TensorEdge &) {
    return Declined{"no partition with both in one kernel is predicted to take less time", "a launch that costs more"};
  });
  return runSteps(problem, std::move(plan), {{"makeKernels", makeKernels}, {"orderKernels", orderKernels}});
}
