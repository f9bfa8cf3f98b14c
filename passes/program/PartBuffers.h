// The buffers of a part of a tile program, and where in its body they are live. Pure.
#ifndef TILEWRIGHT_PROGRAM_PARTBUFFERS_H
#define TILEWRIGHT_PROGRAM_PARTBUFFERS_H

#include "dialects/tile/TileDialect.h"
#include "passes/support/BestFit.h"

namespace tilewright {

/// Those that have places of their own: no registers, and nothing that is kept from phase to phase.
struct PartBuffers {
  llvm::SmallVector<tile::AllocOp> ops; ///< in program order
  llvm::SmallVector<LiveBuffer> ranges; ///< in positions of the ops of the tile's body
  unsigned firstSyncPoint = 0, end = 0; ///< where the block first meets, and behind all ops: there, too, if nowhere else
};

PartBuffers buffersOf(tile::ParallelOp part);

/// What the buffers of both would take if the tiles of the second were computed right behind those of the first, where
/// not even the threads of a block need meet in between.
int64_t joinedBufferBytes(const PartBuffers &first, const PartBuffers &second);

} // namespace tilewright

#endif
