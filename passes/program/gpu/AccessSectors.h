// Counts the 32-byte sectors that the threads of a block touch in one tile, as the simulated device counts them: once
// per access of a warp. Pure.
#ifndef TILEWRIGHT_PROGRAM_GPU_ACCESSSECTORS_H
#define TILEWRIGHT_PROGRAM_GPU_ACCESSSECTORS_H

#include "passes/program/gpu/ThreadMapping.h"

namespace tilewright {

/// Returns the sectors of an access at `map` to a binding, over all points of the nest's tile. If tiles may start
/// anywhere in a sector, this is the mean.
double accessSectors(tile::ComputeOp compute, BlockShape shape, tile::SliceType type, mlir::AffineMap map);

} // namespace tilewright

#endif
