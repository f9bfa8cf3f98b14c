// Proves that the workgroups of a kernel with several phases (plan/ir/Phases.h) are resident at once.
#ifndef TILEWRIGHT_PLAN_GRID_KERNELPHASES_H
#define TILEWRIGHT_PLAN_GRID_KERNELPHASES_H

#include "passes/plan/ir/Phases.h"
#include "passes/plan/space/IterationSpace.h"

namespace tilewright {

/// Returns true if group `reader` reads a result of group `producer`.
bool readsResultsOf(const TensorGraph &graph, const GroupChoice &reader, const GroupChoice &producer);

/// Returns why a kernel with edges at scope grid is illegal, because its workgroups cannot all be resident at once or
/// because such edges are not allowed, or an empty string.
std::string whyNotCoResident(const Plan &plan, const TensorGraph &graph, const Target &target, bool allowed);

} // namespace tilewright

#endif
