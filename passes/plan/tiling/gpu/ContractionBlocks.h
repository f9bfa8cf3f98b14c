// Chooses thread blocks for a fusion group with contractions on a GPU: the tile of a block and its number of threads.
// Tiles grow by powers of two (TileGrowth.h). The time of each tile is predicted for each number of threads, and the
// fastest block is taken (Welder 4.1: traffic, waves, and what fits on an SM).
#ifndef TILEWRIGHT_PLAN_TILING_GPU_CONTRACTIONBLOCKS_H
#define TILEWRIGHT_PLAN_TILING_GPU_CONTRACTIONBLOCKS_H

#include "passes/plan/tiling/gpu/BlockShapes.h"

namespace tilewright {

/// Returns the blocks that could compute the group, at least one: the one to choose, then the others from fast to slow.
/// The tiles of `space` change temporarily. The parameters are those of chooseContractionBlock.
OrDeclined<std::vector<BlockCandidate>> contractionBlocks(const TensorGraph &graph, const Target &target,
                                                          IterationSpace &space, int64_t walked,
                                                          llvm::function_ref<int64_t()> footprint);

/// Sets the tiles, the threads and the predictions of the best block. `walked` is a reduced dim that tiles may walk in
/// blocks, or -1. `footprint` returns the bytes of the buffers for the present tiles. Returns why no block computes the
/// group, or an empty string.
std::string chooseContractionBlock(const TensorGraph &graph, const Target &target, IterationSpace &space,
                                   int64_t walked, llvm::function_ref<int64_t()> footprint);

/// Returns the work of a block with the tiles of the space and `threads` threads, or nothing if so many threads cannot
/// compute it.
std::optional<BlockWork> contractionBlockWork(const TensorGraph &graph, const Target &target, const IterationSpace &space,
                                              int64_t threads);

/// Returns the seconds in which `blocks` such blocks, `together` of them on each SM, compute all tiles one after
/// another.
double contractionSeconds(const TensorGraph &graph, const Target &target, const IterationSpace &space, int64_t threads,
                          double blocks, double together);

/// The tiles of a group, as workgroups can share them (stream-K).
struct SharedTiles {
  int64_t steps = 0;    ///< steps along K of a tile; 0: a workgroup cannot compute part of a tile
  int64_t rowBytes = 0; ///< bytes of the partial that a workgroup hands over
};
SharedTiles sharedTiles(const TensorGraph &graph, const Target &target, const IterationSpace &space, int64_t threads);

/// Returns the seconds in which `blocks` workgroups, `together` of them on each SM, share all tiles evenly. The barrier
/// at which they wait for each other is not included.
double sharedSeconds(const TensorGraph &graph, const Target &target, const IterationSpace &space, int64_t threads,
                     double blocks, double together);

} // namespace tilewright

#endif
