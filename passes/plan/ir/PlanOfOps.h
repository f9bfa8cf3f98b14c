// The part of a plan that is about some of a block's ops, as the plan of a function that has these ops only.
#ifndef TILEWRIGHT_PLAN_IR_PLANOFOPS_H
#define TILEWRIGHT_PLAN_IR_PLANOFOPS_H

#include "passes/plan/ir/Plan.h"

namespace tilewright {

/// Returns the kernels of these ops, numbered from 0 in the given order. Every kernel must have all of its ops among
/// them, or none. Edges that lead into or out of the ops are left out, and so are forms and loops.
Plan planOfOps(const Plan &plan, llvm::ArrayRef<unsigned> ops);

} // namespace tilewright

#endif
