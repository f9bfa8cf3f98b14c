// Checks where a plan says that the tensors of a group are, and how long: code generation puts them there.
#ifndef TILEWRIGHT_PLAN_APPLY_HELDTENSORS_H
#define TILEWRIGHT_PLAN_APPLY_HELDTENSORS_H

#include "passes/plan/ir/Plan.h"
#include "passes/plan/space/IterationSpace.h"

namespace tilewright {

/// Returns why the tensors of a group cannot be where the plan says, or an empty string. Blocks can copy some inputs for
/// a tile or a workgroup. A result is in global memory if it leaves the group, and in the block's memory if other nests
/// read it. The nests of the space are assigned.
std::string whyNotHeld(const Plan &plan, const TensorGraph &graph, const KernelPlan &kernel, const GroupPlan &group,
                       const IterationSpace &space);

} // namespace tilewright

#endif
