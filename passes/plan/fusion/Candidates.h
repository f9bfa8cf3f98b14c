// Lists the plans worth measuring for one subprogram, for tuning: predictions cannot tell close plans apart, but
// measurements can. The plans are listed in the order of their predictions.
#ifndef TILEWRIGHT_PLAN_FUSION_CANDIDATES_H
#define TILEWRIGHT_PLAN_FUSION_CANDIDATES_H

#include "passes/plan/fusion/Explorers.h"

namespace tilewright {

/// Returns at most `count` different legal plans for a graph that `outline` made of a group: plans of one kernel with various
/// tiles, workgroups and scopes, and the best plans of several kernels. The planner's own choice comes first. Returns
/// nothing if the planner has no plan of one kernel for the graph.
std::vector<Plan> planCandidates(const TensorGraph &graph, const Target &target, const PlanOptions &options,
                                 unsigned count);

} // namespace tilewright

#endif
