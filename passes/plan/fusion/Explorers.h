// The explorers: functions from a problem to the draft of a plan, each known to users by the name of its policy.
#ifndef TILEWRIGHT_PLAN_FUSION_EXPLORERS_H
#define TILEWRIGHT_PLAN_FUSION_EXPLORERS_H

#include "passes/plan/fusion/FusionProblem.h"
#include "passes/plan/grid/PlanDraft.h"

namespace tilewright {

/// How a policy chooses forms: as the rules do, by changes of one choice after another, or from all.
enum class FormSearchKind { none, changes, all };

struct Explorer {
  llvm::StringLiteral policy;
  OrDeclined<PlanDraft> (*explore)(const FusionProblem &problem);
  FormSearchKind forms = FormSearchKind::none;
};

/// Returns all explorers, the default first.
llvm::ArrayRef<Explorer> explorers();

/// Returns how a policy chooses forms, or nothing if it is unknown.
std::optional<FormSearchKind> formSearchOf(llvm::StringRef policy);

/// Gives every expression that Tilewright may compute a kernel of its own.
OrDeclined<PlanDraft> exploreUnfused(const FusionProblem &problem);

/// Grows fusion groups along the edges of the graph as long as one iteration space serves them and the prediction
/// improves, leaves groups to IREE that are not predicted to beat it, packs small independent groups into one kernel
/// (FusionStitching 4.1) and joins kernels by grid barriers. It is deterministic and does not search.
OrDeclined<PlanDraft> exploreGreedily(const FusionProblem &problem);

/// Plans by the algorithm of a paper (GroupingPolicy.h), which the options name.
OrDeclined<PlanDraft> exploreByGroupingPolicy(const FusionProblem &problem);

/// Takes the best plan of all policies, and improves it by a search over all moves.
OrDeclined<PlanDraft> exploreUnified(const FusionProblem &problem);

/// Finds the partition into groups, each a kernel of its own, that is predicted to take the least time. It tries all of
/// them, for graphs of at most kMostExhaustive expressions that Tilewright may compute. It shares no move and no
/// pruning with other explorers, so tests compare these with it.
OrDeclined<PlanDraft> exploreExhaustively(const FusionProblem &problem);
inline constexpr size_t kMostExhaustive = 10;

/// Plans with the explorer that the options name. Declines if there is none of that name, if check() does, or if the
/// explorer does.
OrDeclined<PlanDraft> explore(const FusionProblem &problem);
/// Does so and writes the plan.
OrDeclined<Plan> solve(const FusionProblem &problem);
Plan writePlan(const FusionProblem &problem, const PlanDraft &draft);

/// Does so for a graph that may be empty; then the plan is, too.
OrDeclined<Plan> makePlan(const TensorGraph &graph, const Target &target, const PlanOptions &options = {},
                          const PlanRestrictions &restrictions = {});

/// Returns why a policy is unknown, with the list of those there are, or an empty string.
std::string whyUnknownPolicy(llvm::StringRef policy);

/// Returns the predicted seconds of all kernels of that plan together. Declines if there is no plan, or if it leaves
/// arithmetic to IREE that is not computed when the program is loaded.
OrDeclined<double> plannedSeconds(const TensorGraph &graph, const Target &target, const PlanOptions &options);
OrDeclined<double> plannedSeconds(const TensorGraph &graph, const Plan &plan);

} // namespace tilewright

#endif
