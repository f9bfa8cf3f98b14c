// Assigns offsets to the scratch that the nests of a part need besides its buffers. Nests use it one after another, but
// a prefetch needs its slots while the contraction before is still computed. Pure.
#ifndef TILEWRIGHT_PROGRAM_GPU_SCRATCHOFFSETS_H
#define TILEWRIGHT_PROGRAM_GPU_SCRATCHOFFSETS_H

#include "dialects/tile/TileDialect.h"
#include "passes/target/Target.h"
#include "llvm/ADT/DenseMap.h"

namespace tilewright {

struct ScratchOffsets {
  llvm::DenseMap<mlir::Operation *, int64_t> offsets; ///< offset of each nest with scratch, in bytes behind the buffers
  int64_t bytes = 0;

  int64_t offsetOf(tile::ComputeOp compute) const { return offsets.lookup(compute); }
};

ScratchOffsets scratchOffsets(tile::ParallelOp part, int64_t threads, const Target &target);

} // namespace tilewright

#endif
