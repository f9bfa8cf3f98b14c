// Keeps tiles in shared memory across grid barriers. If phases of a kernel read the same tensor by the same tiles
// (ResidentTiles.h), they read it from memory once. This is done where it is predicted to take less time than the best
// blocks that read the tensor again.
#ifndef TILEWRIGHT_PLAN_GRID_RESIDENTATGRID_H
#define TILEWRIGHT_PLAN_GRID_RESIDENTATGRID_H

#include "passes/plan/grid/PlannedKernel.h"

namespace tilewright {

/// Returns the fastest kernel of these groups, in the order of its phases, in which blocks of one group keep tiles for
/// another. Returns nothing if none is clearly faster than the present kernel.
std::optional<PlannedKernel> keepTiles(const GridContext &context, llvm::ArrayRef<unsigned> parts);

} // namespace tilewright

#endif
