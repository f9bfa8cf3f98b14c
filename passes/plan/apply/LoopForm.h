// Decides whether a loop becomes part of the kernel of its body, or launches the kernels of its body in every step.
#ifndef TILEWRIGHT_PLAN_APPLY_LOOPFORM_H
#define TILEWRIGHT_PLAN_APPLY_LOOPFORM_H

#include "passes/plan/ir/PlanLoops.h"
#include "passes/target/Target.h"

namespace tilewright {

/// Returns why a loop cannot be part of its kernel, or an empty string. `plan` is that of the body.
std::string whyNotOneKernel(const BlockGraph &body, const Plan &plan, const Target &target, bool gridSync);

} // namespace tilewright

#endif
