// Blocks of threads for a part with contractions on a GPU: the tile that a block computes and how many threads it has.
// Tiles grow by powers of two (TileGrowth.h); each is predicted with every number of threads, and the quickest is taken
// (Welder 4.1: traffic, waves, what fits an SM).
#ifndef TILEWRIGHT_PLAN_CONTRACTIONBLOCKS_H
#define TILEWRIGHT_PLAN_CONTRACTIONBLOCKS_H

#include "passes/plan/BlockShapes.h"

namespace tilewright {

/// The blocks that could compute the part, the one to take first, then the quickest; `why` there is none. The space's
/// tiles change meanwhile. The other parameters are those of chooseContractionBlock.
std::vector<BlockCandidate> contractionBlocks(const TensorGraph &graph, const Target &target, IndexSpace &space,
                                              int64_t walked, llvm::function_ref<int64_t()> footprint,
                                              std::string &why);

/// Sets tiles, threads and what is predicted of the blocks. `walked` is a reduced dim that tiles may have in blocks, or
/// -1. `footprint` gives the bytes of the buffers that the tiles
/// take. Returns why no block computes the part, or nothing.
std::string chooseContractionBlock(const TensorGraph &graph, const Target &target, IndexSpace &space, int64_t walked,
                                   llvm::function_ref<int64_t()> footprint);

} // namespace tilewright

#endif
