// Applies stream-K to kernels of one contraction: workgroups share the K steps of all tiles (Osama et al., "Stream-K",
// PPoPP 2023). It pays where whole tiles leave many SMs idle in the last wave, and that costs more than the barrier at
// which workgroups hand over partials.
#ifndef TILEWRIGHT_PLAN_GRID_STREAMK_H
#define TILEWRIGHT_PLAN_GRID_STREAMK_H

#include "passes/plan/grid/GridContext.h"

namespace tilewright {

/// Returns the kernel's only group with tiles shared by workgroups, or nothing if it is not clearly faster with the
/// traffic of partials counted.
std::optional<PlannedGroup> inSharedTiles(const GridContext &context, unsigned part);

/// Adds the traffic of partials to all groups whose workgroups share tiles, in a kernel of their own or in a phase.
void countPartials(const GridContext &context, Decisions &decisions);

} // namespace tilewright

#endif
