// The policy `unified`: the best plan that any policy finds, improved by a local search over all moves. Its prediction is
// at most that of every policy, of `greedy` and of `unfused`, on the same graph, because their plans are among those it
// chooses from.
//
// The policies' groupings are combined first: where two of them disagree, each region of the graph takes the groups that
// are predicted to take less time. The search then starts from the combination and from every policy's grouping. On a
// GPU it runs a second time with the price of a barrier for each kernel instead of that of a launch, since kernels are
// joined by barriers afterwards.
#include "passes/plan/fusion/Explorers.h"
#include "passes/plan/fusion/GroupingPolicy.h"
#include "passes/plan/search/Combine.h"
#include "passes/plan/search/Improve.h"

using namespace mlir;
using namespace tilewright;

/// Expressions in groups that are planned in a second, on one core of an Intel Xeon with AVX-512 (2026-11-27:
/// llama-block and bert-small, for x86-64-avx512 and an H200).
static constexpr double kPlannedPerSecond = 2500;
/// Number of groupings of which kernels are made.
static constexpr size_t kMostFinished = 4;

namespace {
class Unifier {
public:
  explicit Unifier(const FusionProblem &problem) : problem(problem), search(problem) {}

  /// Returns the seeds, which come first, and what the search finds.
  std::vector<ScoredPlan> run() {
    takeSeeds();
    if (problem.options.planSeconds > 0) {
      bool mayJoin = problem.machine.hasGridBarriers() && problem.options.gridSync;
      unsigned searches = mayJoin ? 2 : 1;
      searchFrom(0, searches);
      if (mayJoin)
        searchFrom(problem.machine.gpu.gridBarrierSeconds - problem.machine.launchSeconds, searches);
    }
    return std::move(found);
  }

private:
  void takeSeeds() {
    PlanDraft greedy = runSteps(problem, search.start, greedyGroupSteps());
    seeds.push_back(search.groupingOf(greedy));
    greedy = runSteps(problem, std::move(greedy), kernelSteps());
    found.push_back(search.scored(std::move(greedy)));
    seeds.push_back(Grouping(search.space));
    found.push_back(search.scored(*exploreUnfused(problem)));
    for (const GroupingPolicy &policy : groupingPolicies()) {
      std::vector<Grouping> own = policy.group(search.space);
      found.push_back(planOf(search, own, policy.steps()));
      llvm::append_range(seeds, own);
    }
  }

  /// Searches with a share of the budget, and makes kernels of the best groupings.
  void searchFrom(double secondsPerKernel, unsigned searches) {
    size_t most = static_cast<size_t>(kPlannedPerSecond * problem.options.planSeconds / searches);
    SearchLimits limits{search.space.costs.numPlanned() + most, secondsPerKernel};
    std::vector<Grouping> starts = seeds;
    starts.insert(starts.begin(), combine(seeds, limits));
    sort(starts, secondsPerKernel);
    std::vector<Grouping> improved;
    for (const Grouping &start : starts)
      if (search.space.costs.numPlanned() < limits.mostPlanned)
        improved.push_back(improve(start, limits));
    sort(improved, secondsPerKernel);
    for (const Grouping &grouping : ArrayRef(improved).take_front(kMostFinished / searches))
      found.push_back(finish(search, grouping, unifiedSteps(), whyApart));
  }

  /// Sorts groupings by their predictions and removes repeated ones.
  static void sort(std::vector<Grouping> &groupings, double secondsPerKernel) {
    llvm::stable_sort(groupings, [&](const Grouping &a, const Grouping &b) {
      return a.seconds(secondsPerKernel) < b.seconds(secondsPerKernel);
    });
    groupings.erase(llvm::unique(groupings), groupings.end());
  }

  static ArrayRef<PlanStep> unifiedSteps() {
    static const std::vector<PlanStep> steps = [] {
      std::vector<PlanStep> all = {{"trimViews", trimViews}};
      llvm::append_range(all, kernelSteps());
      return all;
    }();
    return steps;
  }

  /// Returns why two groups are not one.
  static Declined whyApart(const Grouping &grouping, unsigned a, unsigned b) {
    if (!grouping.canMerge({a, b}))
      return {"another op depends on the producer's kernel and the consumer's kernel on it",
              "taking the ops between the two into the kernel"};
    const CostedGroup &merged = grouping.merged({a, b});
    if (!merged.isPossible())
      return merged.why;
    double apart = grouping.group(a).seconds + grouping.group(b).seconds;
    if (merged.seconds < apart)
      return {"the planner's budget ended before it tried one kernel, " + microseconds(merged.seconds) + " against " +
                  microseconds(apart),
              "a larger --plan-seconds"};
    return {"one kernel is predicted slower: " + microseconds(merged.seconds) + " against " + microseconds(apart),
            "a launch that costs " + microseconds(merged.seconds - apart) + " more"};
  }

  const FusionProblem &problem;
  GroupSearch search;
  std::vector<Grouping> seeds;
  std::vector<ScoredPlan> found;
};
} // namespace

std::vector<ScoredPlan> tilewright::searchPlans(const FusionProblem &problem) { return Unifier(problem).run(); }

OrDeclined<PlanDraft> tilewright::exploreUnified(const FusionProblem &problem) {
  std::vector<ScoredPlan> plans = searchPlans(problem);
  auto *best = plans.data();
  for (ScoredPlan &plan : plans)
    if (plan.score.isBetterThan(best->score))
      best = &plan;
  return std::move(best->plan);
}
