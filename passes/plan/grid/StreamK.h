// Kernels of one contraction whose workgroups share the steps of all tiles, and so tiles (stream-K: Osama et al.,
// "Stream-K", PPoPP 2023): where whole tiles leave many SMs idle in the last turn, and that costs more than the barrier
// at which workgroups leave sums to each other.
#ifndef TILEWRIGHT_PLAN_GRID_STREAMK_H
#define TILEWRIGHT_PLAN_GRID_STREAMK_H

#include "passes/plan/grid/GridContext.h"

namespace tilewright {

/// The kernel's only part with tiles that workgroups share; nothing where that is not clearly quicker, with what they
/// leave to each other counted.
std::optional<PlannedGroup> inSharedTiles(const GridContext &context, unsigned part);

/// Counts that for all parts whose workgroups share tiles, alone or as a phase of a kernel.
void countPartials(const GridContext &context, Decisions &decisions);

} // namespace tilewright

#endif
