// Uses grid barriers instead of launches, and instead of blocks that are too few. It cuts the kernels that the planner
// has packed (CutAtGrid), joins them, lets blocks share rows (ShareRows), keep tiles (ResidentAtGrid) and share tiles
// (StreamK), wherever the evaluator predicts a gain.
#ifndef TILEWRIGHT_PLAN_GRID_JOINATGRID_H
#define TILEWRIGHT_PLAN_GRID_JOINATGRID_H

#include "passes/plan/grid/PlanDraft.h"
#include "passes/plan/scopes/PlanGroup.h"

namespace tilewright {

/// Joins kernels that depend on each other with an edge at scope grid, if the target guarantees that all blocks are
/// resident and the evaluator predicts that a barrier costs less than a launch (partitionAtGridSync). Reasons against
/// it are recorded in the decisions. Changes nothing if the target has no grid barriers. If they are not
/// allowed, that is the recorded reason.
PlanDraft joinAtGrid(const GroupProblem &groups, bool allowed, PlanDraft plan);

} // namespace tilewright

#endif
