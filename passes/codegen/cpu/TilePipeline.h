// Which tiles of a part overlap: where the results of a tile are streamed past the caches, its last nest waits for
// memory while the first nest of the next tile computes, so the two run in one loop (software pipelining over tiles).
#ifndef TILEWRIGHT_CODEGEN_CPU_TILEPIPELINE_H
#define TILEWRIGHT_CODEGEN_CPU_TILEPIPELINE_H

#include "passes/codegen/common/NestEmitter.h"

namespace tilewright {

struct TilePipeline {
  /// The first nest of a tile, and the last, which runs in the loops of the next tile's first; null: tiles follow each
  /// other.
  tile::ComputeOp first, last;
  std::string reason; ///< why tiles that stream follow each other

  explicit operator bool() const { return static_cast<bool>(last); }
};

/// The pipeline of a part of `program`, whose buffers exist twice then.
TilePipeline pipelineTiles(tile::ProgramOp program, tile::ParallelOp part, VectorShape shape);

} // namespace tilewright

#endif
