// Decides how many blocks of each kernel of a plan shall be resident on an SM at once, which bounds the registers of
// their threads (KernelPlan::residentBlocks). A plan from a file may state it; it is then checked against the target.
#ifndef TILEWRIGHT_PLAN_TILING_GPU_PLANNEDRESIDENCY_H
#define TILEWRIGHT_PLAN_TILING_GPU_PLANNEDRESIDENCY_H

#include "passes/plan/ir/Plan.h"
#include "passes/plan/space/PlannedGroup.h"
#include "passes/target/Target.h"

namespace tilewright {

/// Decides for the kernels that leave it open. Blocks that wait for each other must be resident at once. The cost model
/// assumes that as many blocks of contractions are as the kernel has and memory allows; without a bound, ptxas takes
/// more registers in order to start late loads early. `groupOf` returns the group that the planner made of an op; it is
/// null for a plan from a file.
void settleResidentBlocks(Plan &plan, const TensorGraph &graph, const Target &target,
                          llvm::function_ref<const PlannedGroup &(unsigned op)> groupOf = nullptr);

/// Returns why an SM cannot hold as many blocks as the plan states, with the place, or an empty string. What depends on
/// buffers and registers is checked when code is generated.
std::string whyNotResident(const Plan &plan, const TensorGraph &graph, const Target &target);

} // namespace tilewright

#endif
