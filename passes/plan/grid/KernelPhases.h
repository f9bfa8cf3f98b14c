// Splits a kernel whose groups depend on each other into phases, with a grid barrier between two phases; these edges
// have scope grid. The phases follow from the edges and the order of the groups, so plans do not list them.
#ifndef TILEWRIGHT_PLAN_GRID_KERNELPHASES_H
#define TILEWRIGHT_PLAN_GRID_KERNELPHASES_H

#include "passes/plan/ir/Plan.h"
#include "passes/plan/space/IterationSpace.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace tilewright {

using Phases = llvm::SmallVector<llvm::SmallVector<unsigned>>;

/// Splits a sequence of groups in front of each group that reads a result of its own phase.
Phases splitIntoPhases(unsigned count, llvm::function_ref<bool(unsigned reader, unsigned producer)> reads);

/// Returns the phases of a kernel of a plan, as indices into its groups.
Phases phasesOf(const Plan &plan, const KernelPlan &kernel);
/// Returns the workgroups of the kernel's widest phase.
int64_t workgroupsOf(const Plan &plan, const KernelPlan &kernel);

/// Returns true if group `reader` reads a result of group `producer`.
bool readsResultsOf(const TensorGraph &graph, const GroupChoice &reader, const GroupChoice &producer);

/// Returns why a kernel with edges at scope grid is illegal, because its workgroups cannot all be resident at once or
/// because such edges are not allowed, or an empty string.
std::string whyNotCoResident(const Plan &plan, const TensorGraph &graph, const Target &target, bool allowed);

} // namespace tilewright

#endif
