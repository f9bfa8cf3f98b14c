// Replans fusion groups for other blocks. A kernel has blocks of one size, and the shared memory of its largest block
// limits how many blocks of every group are resident.
#ifndef TILEWRIGHT_PLAN_GRID_RESIZEDGROUPS_H
#define TILEWRIGHT_PLAN_GRID_RESIZEDGROUPS_H

#include "passes/plan/grid/GridContext.h"
#include "passes/plan/tiling/gpu/BlockShapes.h"

namespace tilewright {

/// Returns the group in these blocks, or nothing if they cannot compute it.
std::optional<PlannedGroup> inBlocks(const GridContext &context, unsigned part, const BlockCandidate &block);

/// Returns the group in its fastest blocks of `threads` threads, `resident` of which fit on an SM (0: as many as
/// possible), or nothing. For contractions, `most` limits the number of blocks (0: one per tile). Every kernel that a
/// group might join asks for the same sizes, so answers are remembered.
std::optional<PlannedGroup> resizedGroup(const GridContext &context, unsigned part, int64_t threads, int64_t resident,
                                         int64_t most = 0);

} // namespace tilewright

#endif
