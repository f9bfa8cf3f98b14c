// The plans worth measuring for one subprogram. What a prediction cannot tell apart, a clock can; this lists what to
// put before it, in the order of the prediction.
#ifndef TILEWRIGHT_PLAN_FUSION_CANDIDATES_H
#define TILEWRIGHT_PLAN_FUSION_CANDIDATES_H

#include "passes/plan/fusion/GreedyPlanner.h"

namespace tilewright {

/// Plans that put all of a graph (as `outlineGroup` makes it) into one kernel, with other tiles, workgroups and scopes,
/// and the best that cut it into several; the planner's own choice comes first. At most `count`, all legal and all
/// different. None where the planner has no plan of one kernel for the graph.
std::vector<Plan> planCandidates(const TensorGraph &graph, const Target &target, const PlanOptions &options,
                                 unsigned count);

} // namespace tilewright

#endif
