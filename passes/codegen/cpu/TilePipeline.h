// Software pipelining over tiles. If the last nest of a tile streams its results past the caches, it waits for memory
// while the first nest of the next tile could compute. The two nests then run in one loop.
#ifndef TILEWRIGHT_CODEGEN_CPU_TILEPIPELINE_H
#define TILEWRIGHT_CODEGEN_CPU_TILEPIPELINE_H

#include "passes/codegen/common/NestEmitter.h"

namespace tilewright {

struct TilePipeline {
  /// The first nest of a tile, and the last nest, which runs in the loops of the next tile's first nest. Both are null
  /// if tiles do not overlap.
  tile::ComputeOp first, last;
  std::string reason; ///< why tiles that stream their results do not overlap

  explicit operator bool() const { return static_cast<bool>(last); }
};

/// Returns the pipeline of a part of `program`. A pipelined part needs the buffers of a tile twice.
TilePipeline pipelineTiles(tile::ProgramOp program, tile::ParallelOp part, VectorShape shape);

} // namespace tilewright

#endif
