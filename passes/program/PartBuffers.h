// The buffers of a part of a tile program and their live ranges in its body. Pure.
#ifndef TILEWRIGHT_PROGRAM_PARTBUFFERS_H
#define TILEWRIGHT_PROGRAM_PARTBUFFERS_H

#include "dialects/tile/TileDialect.h"
#include "passes/support/BestFit.h"

namespace tilewright {

/// Buffers that need an offset of their own: neither those in registers nor resident tiles.
struct PartBuffers {
  llvm::SmallVector<tile::AllocOp> ops; ///< buffers in program order
  llvm::SmallVector<LiveBuffer> ranges; ///< live ranges, in positions of the ops in the tile's body
  unsigned firstSyncPoint = 0, end = 0; ///< position of the first sync (or of the end, without a sync), and the
                                        ///< position behind all ops
};

PartBuffers buffersOf(tile::ParallelOp part);

/// The resident tiles of a program, each with a buffer in every part that uses it.
struct ResidentBuffers {
  llvm::SmallVector<llvm::SmallVector<tile::AllocOp, 2>> ops; ///< buffers of each tile, tiles by number
  llvm::SmallVector<LiveBuffer> ranges;                       ///< live range of each tile, in phases
};

ResidentBuffers residentBuffersOf(tile::ProgramOp program);

/// Returns the bytes that the buffers of both parts need if the tiles of the second are computed right behind those of
/// the first and the threads of a block need not synchronise in between.
int64_t joinedBufferBytes(const PartBuffers &first, const PartBuffers &second);

} // namespace tilewright

#endif
