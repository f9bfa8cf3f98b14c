// Policies that choose a grouping of the expressions and leave the rest to steps that all planners share. Each is the
// algorithm of a paper over the moves of passes/plan/search.
#ifndef TILEWRIGHT_PLAN_FUSION_GROUPINGPOLICY_H
#define TILEWRIGHT_PLAN_FUSION_GROUPINGPOLICY_H

#include "passes/plan/fusion/PlanScore.h"
#include "passes/plan/fusion/PlannerStep.h"
#include "passes/plan/search/Grouping.h"

namespace tilewright {

/// The draft of a plan and its score.
struct ScoredPlan {
  PlanDraft plan;
  PlanScore score;
};

/// Says why two groups of a grouping, the first of which produces what the second reads, are not one; null if the policy
/// alone is the reason.
using WhyApart = Declined (*)(const Grouping &grouping, unsigned producer, unsigned reader);

/// A problem with the space that searches share, and conversions between their states and drafts.
class GroupSearch {
public:
  explicit GroupSearch(const FusionProblem &problem);

  const FusionProblem &problem;
  const PlanDraft start; ///< each expression that Tilewright may compute in a group of its own
  SearchSpace space;

  Grouping groupingOf(const PlanDraft &draft);
  /// Returns a draft with these groups. Groups of reshapes are left as the borders of kernels.
  PlanDraft draftOf(const Grouping &grouping, WhyApart whyApart) const;
  /// Returns a draft that has its kernels, with its score.
  ScoredPlan scored(PlanDraft plan) const;
};

struct GroupingPolicy {
  llvm::StringLiteral name;
  /// Returns the groupings from which the one with the best plan is taken.
  std::vector<Grouping> (*group)(SearchSpace &space);
  llvm::ArrayRef<PlanStep> packing = {};  ///< steps that pack kernels that do not depend on each other
  llvm::ArrayRef<PlanStep> barriers = {}; ///< steps that join kernels in launch order

  /// Returns the steps that make kernels of the groups of a draft and order them.
  llvm::SmallVector<PlanStep> steps() const;
};

/// Returns the policies of the papers.
llvm::ArrayRef<GroupingPolicy> groupingPolicies();
/// Returns the policy `souffle` with the first of its optimisations only, as its table 4 adds them: the horizontal
/// transformation (V1), the vertical one (V2), and barriers of the grid (V3). With the reuse of tiles it is `souffle`.
llvm::ArrayRef<GroupingPolicy> souffleAblation();

/// Returns the plan that the steps make of a grouping.
ScoredPlan finish(GroupSearch &search, const Grouping &grouping, llvm::ArrayRef<PlanStep> steps,
                  WhyApart whyApart = nullptr);
/// Returns the best plan that the steps make of one of the groupings.
ScoredPlan planOf(GroupSearch &search, llvm::ArrayRef<Grouping> groupings, llvm::ArrayRef<PlanStep> steps);

/// Returns the plans that the policy `unified` chooses from: those of all policies, and the best that its search finds.
std::vector<ScoredPlan> searchPlans(const FusionProblem &problem);

/// Steps that grow groups greedily, and those that make kernels of groups and join them.
llvm::ArrayRef<PlanStep> greedyGroupSteps();
llvm::ArrayRef<PlanStep> kernelSteps();

std::vector<Grouping> groupByXla(SearchSpace &space);
std::vector<Grouping> groupByFusionStitching(SearchSpace &space);
std::vector<Grouping> groupByWelder(SearchSpace &space);
std::vector<Grouping> groupByPowerFusion(SearchSpace &space);
std::vector<Grouping> groupBySouffle(SearchSpace &space);
/// Merges memory-intensive expressions that read a tensor in common, and no others (Souffle 6.1).
std::vector<Grouping> groupHorizontally(SearchSpace &space);
std::vector<Grouping> groupByChimera(SearchSpace &space);

/// Packs kernels that do not depend on each other by PatternReduction under a virtual producer of all of them
/// (FusionStitching 5.2: remote fusion).
PlanDraft packRemotely(const FusionProblem &problem, PlanDraft plan);
/// Joins kernels in launch order by barriers of the grid for as long as all blocks can be resident (Souffle 5.4).
PlanDraft fillSubprograms(const FusionProblem &problem, PlanDraft plan);
/// Keeps tiles on the chip that a later group of their kernel reads, where that takes less time (Souffle 6.5).
PlanDraft reuseTiles(const FusionProblem &problem, PlanDraft plan);

} // namespace tilewright

#endif
