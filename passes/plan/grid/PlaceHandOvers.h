// Decides where each tensor lies that a phase of a kernel hands on to later ones: in the shared memory of the blocks, in
// the L2, or in memory (Souffle 6.5). A block finds in shared memory what it wrote itself (ResidentTiles.h); where that
// has too little room, and in the L2, what was not used for the longest time is spilled (RecentUse.h). This is done when
// all else is decided, with the room that prefetches left.
#ifndef TILEWRIGHT_PLAN_GRID_PLACEHANDOVERS_H
#define TILEWRIGHT_PLAN_GRID_PLACEHANDOVERS_H

#include "passes/plan/ir/Plan.h"
#include "passes/plan/space/PlannedGroup.h"

namespace tilewright {

/// Adds resident tiles to the kernels of a plan that was just made, and states the place at each edge of scope grid.
/// `groupOf` returns the group that the planner made of an op.
void placeHandOvers(Plan &plan, const TensorGraph &graph, const Target &target,
                    llvm::function_ref<const PlannedGroup &(unsigned op)> groupOf);

} // namespace tilewright

#endif
