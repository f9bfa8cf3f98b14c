// The 32-byte sectors that the threads of a block touch in one tile, as the simulated device will count them: each once
// for every access of a warp. Pure.
#ifndef TILEWRIGHT_PROGRAM_GPU_ACCESSSECTORS_H
#define TILEWRIGHT_PROGRAM_GPU_ACCESSSECTORS_H

#include "passes/program/gpu/ThreadMapping.h"

namespace tilewright {

/// Of an access at `map` to a binding, over all points of the nest's tile; where tiles start anywhere in a sector, the
/// mean.
double accessSectors(tile::ComputeOp compute, BlockShape shape, tile::SliceType type, mlir::AffineMap map);

} // namespace tilewright

#endif
