// Settles whose workgroups share the tiles of a contraction (stream-K: `steps` of a group), when the layout of the
// contraction is known. A plan from a file is checked against the same facts.
#ifndef TILEWRIGHT_PLAN_TILING_GPU_PLANNEDSHARING_H
#define TILEWRIGHT_PLAN_TILING_GPU_PLANNEDSHARING_H

#include "passes/plan/ir/Plan.h"
#include "passes/target/Target.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace tilewright {

/// Sets the steps of tiles that workgroups share to those of the contraction's layout, where the planner chose that.
/// `isGiven` says that the plan was given with the layout of an op.
void settleSteps(Plan &plan, const TensorGraph &graph, const Target &target,
                 llvm::function_ref<bool(unsigned op)> isGiven);

/// Withdraws sharing from groups of a plan that was just made, where whyNotShared has a reason.
void settleSharing(Plan &plan, const TensorGraph &graph, const Target &target);

/// Returns why workgroups cannot share the tiles of a group as the plan states, with the place of the group, or an empty
/// string.
std::string whyNotShared(const Plan &plan, const TensorGraph &graph, const Target &target);

} // namespace tilewright

#endif
