// Decides how blocks on a GPU compute the contractions of a plan (layout/GemmChoice.h), as the last step of planning,
// when tiles, threads and scopes are known. A plan from a file may state the choice of each contraction; it is then
// checked against the same facts.
#ifndef TILEWRIGHT_PLAN_TILING_GPU_PLANNEDGEMMS_H
#define TILEWRIGHT_PLAN_TILING_GPU_PLANNEDGEMMS_H

#include "passes/layout/GemmTiling.h"
#include "passes/plan/ir/Plan.h"
#include "passes/plan/space/IterationSpace.h"

namespace tilewright {

/// Chooses how blocks compute each contraction of a plan that does not state it yet. `kSlicesOf` returns the slices of
/// K for which the planner chose the block of an op; if it is null, K is not sliced.
void chooseGemms(Plan &plan, const TensorGraph &graph, const Target &target,
                 llvm::function_ref<int64_t(unsigned op)> kSlicesOf = nullptr);

/// Returns why a block cannot compute a contraction as the plan states, with the place of the contraction; or an empty
/// string.
std::string whyNotComputed(const Plan &plan, const TensorGraph &graph, const Target &target);

/// Returns the layout of a contraction as the plan states it; nothing if it is none or the plan does not fit.
std::optional<GemmTiling> plannedTiling(const Plan &plan, const TensorGraph &graph, const KernelPlan &kernel,
                                        const GroupPlan &group, const OpPlan &op, const Target &target);

/// Returns the registers to assume for each thread of the kernel's blocks: those that its contractions need, but at
/// least kUnknownRegisters.
int64_t countedRegisters(const Plan &plan, const TensorGraph &graph, const KernelPlan &kernel, const Target &target);

} // namespace tilewright

#endif
