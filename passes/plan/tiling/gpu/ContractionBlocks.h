// Blocks of threads for a part with contractions on a GPU: the tile that a block computes and how many threads it has.
// Tiles grow by powers of two (TileGrowth.h); each is predicted with every number of threads, and the quickest is taken
// (Welder 4.1: traffic, waves, what fits an SM).
#ifndef TILEWRIGHT_PLAN_TILING_GPU_CONTRACTIONBLOCKS_H
#define TILEWRIGHT_PLAN_TILING_GPU_CONTRACTIONBLOCKS_H

#include "passes/plan/tiling/gpu/BlockShapes.h"

namespace tilewright {

/// The blocks that could compute the part, the one to take first, then the quickest; `why` there is none. The space's
/// tiles change meanwhile. The other parameters are those of chooseContractionBlock.
std::vector<BlockCandidate> contractionBlocks(const TensorGraph &graph, const Target &target, IterationSpace &space,
                                              int64_t walked, llvm::function_ref<int64_t()> footprint,
                                              std::string &why);

/// Sets tiles, threads and what is predicted of the blocks. `walked` is a reduced dim that tiles may have in blocks, or
/// -1. `footprint` gives the bytes of the buffers that the tiles
/// take. Returns why no block computes the part, or nothing.
std::string chooseContractionBlock(const TensorGraph &graph, const Target &target, IterationSpace &space,
                                   int64_t walked, llvm::function_ref<int64_t()> footprint);

/// Of a space whose tiles were chosen, what its block is with so many threads and the same tiles; nothing if so many
/// cannot compute it.
std::optional<BlockWork> contractionBlockWork(const TensorGraph &graph, const Target &target, IterationSpace space,
                                              int64_t threads);

/// The seconds in which so many of those blocks, `together` of them on an SM, compute all tiles one after another.
double contractionSeconds(const TensorGraph &graph, const Target &target, IterationSpace space, int64_t threads,
                          double blocks, double together);

/// Tiles of a part that workgroups can share (stream-K).
struct SharedTiles {
  int64_t steps = 0;    ///< of a tile's terms; 0: a workgroup cannot compute a part of a tile
  int64_t rowBytes = 0; ///< that a workgroup leaves of a tile which another one begins
};
SharedTiles sharedTiles(const TensorGraph &graph, const Target &target, IterationSpace space, int64_t threads);

/// The seconds in which so many workgroups, `together` of them on an SM, share all tiles evenly, without the barrier at
/// which they wait for each other.
double sharedSeconds(const TensorGraph &graph, const Target &target, IterationSpace space, int64_t threads,
                     double blocks, double together);

} // namespace tilewright

#endif
