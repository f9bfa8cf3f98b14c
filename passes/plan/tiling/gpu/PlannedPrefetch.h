// Decides which contractions of a plan are prefetched (Souffle 6.5): their first steps are copied to shared memory
// while the contraction before them is multiplied, or before the grid barrier in front of them. The slots of both are
// live at once, so this is done only if a block has room for both and no fewer blocks are resident on an SM.
#ifndef TILEWRIGHT_PLAN_TILING_GPU_PLANNEDPREFETCH_H
#define TILEWRIGHT_PLAN_TILING_GPU_PLANNEDPREFETCH_H

#include "passes/plan/ir/Plan.h"
#include "passes/plan/space/PlannedGroup.h"

namespace tilewright {

/// Withdraws prefetches of a plan for which its blocks have no room, unless `isGiven` says that the plan was given with
/// the prefetch of an op. `groupOf` returns the group that the planner made of an op. If it is null, the plan is from a
/// file, and buffers are taken to share no memory.
void settlePrefetches(Plan &plan, const TensorGraph &graph, const Target &target,
                      llvm::function_ref<bool(unsigned op)> isGiven,
                      llvm::function_ref<const PlannedGroup &(unsigned op)> groupOf = nullptr);

} // namespace tilewright

#endif
