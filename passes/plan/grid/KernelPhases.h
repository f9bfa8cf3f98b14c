// Kernels whose parts depend on each other run them in phases, with a barrier of the grid between two: edges at scope
// grid. Which parts share a phase follows from those edges and the order of the parts, so no plan states it.
#ifndef TILEWRIGHT_PLAN_GRID_KERNELPHASES_H
#define TILEWRIGHT_PLAN_GRID_KERNELPHASES_H

#include "passes/plan/ir/Plan.h"
#include "passes/plan/space/IterationSpace.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace tilewright {

using Phases = llvm::SmallVector<llvm::SmallVector<unsigned>>;

/// A sequence of parts, cut before each that reads what another of its phase makes.
Phases splitIntoPhases(unsigned count, llvm::function_ref<bool(unsigned reader, unsigned producer)> reads);

/// Of a kernel of a plan: indices into its parts.
Phases phasesOf(const Plan &plan, const KernelPlan &kernel);
/// Of the widest phase.
int64_t workgroupsOf(const Plan &plan, const KernelPlan &kernel);

/// Whether the part `reader` reads what the part `producer` makes.
bool readsResultsOf(const TensorGraph &graph, const GroupChoice &reader, const GroupChoice &producer);

/// Empty, or why a kernel has edges at scope grid whose workgroups cannot all be resident at once, or are not allowed.
std::string whyNotCoResident(const Plan &plan, const TensorGraph &graph, const Target &target, bool allowed);

} // namespace tilewright

#endif
