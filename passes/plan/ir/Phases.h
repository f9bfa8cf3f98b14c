// Splits a kernel whose groups depend on each other into phases, with a grid barrier between two phases; these edges
// have scope grid. The phases follow from the edges and the order of the groups, so plans do not list them.
#ifndef TILEWRIGHT_PLAN_IR_PHASES_H
#define TILEWRIGHT_PLAN_IR_PHASES_H

#include "passes/plan/ir/Plan.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace tilewright {

using Phases = llvm::SmallVector<llvm::SmallVector<unsigned>>;

/// Splits a sequence of groups in front of each group that reads a result of its own phase.
Phases splitIntoPhases(unsigned count, llvm::function_ref<bool(unsigned reader, unsigned producer)> reads);

/// Returns the phases of a kernel of a plan, as indices into its groups.
Phases phasesOf(const Plan &plan, const KernelPlan &kernel);
/// Returns the workgroups of the kernel's widest phase.
int64_t workgroupsOf(const Plan &plan, const KernelPlan &kernel);
/// Returns how many blocks of a kernel each of so many SMs runs, if all blocks run at once. They are whole clusters.
int64_t blocksPerSm(const Plan &plan, const KernelPlan &kernel, int64_t sms);

} // namespace tilewright

#endif
