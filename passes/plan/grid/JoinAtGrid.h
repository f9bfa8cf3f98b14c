// Barriers of the grid in place of launches, and in place of blocks that are too few: the kernels that the planner has
// packed are cut (CutAtGrid), joined, have their blocks keep tiles (ResidentAtGrid) or share them (StreamK), wherever
// the evaluator predicts that it pays.
#ifndef TILEWRIGHT_PLAN_GRID_JOINATGRID_H
#define TILEWRIGHT_PLAN_GRID_JOINATGRID_H

#include "passes/plan/grid/WritePlan.h"
#include "passes/plan/ir/Partition.h"

namespace tilewright {

/// Joins kernels that depend on each other at scope grid where the target is sure to have all blocks resident and the
/// evaluator says that a barrier costs less than a launch (partitionAtGridSync); the reasons against it are noted in
/// `decisions.declined`. Leaves all as it is where the target has no barriers of the grid; where they are not allowed,
/// that is the reason.
void joinAtGrid(const TensorGraph &graph, const Target &target, Partition &partition, Decisions &decisions,
                bool allowed);

} // namespace tilewright

#endif
