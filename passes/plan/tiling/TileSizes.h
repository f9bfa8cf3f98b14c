// Tile sizes, workgroups and the footprint of an index space. Closed form: dims outside the grid lie whole in a tile,
// grid dims are walked one by one, except that the vector dim is cut into a few vectors and that tiles of very few
// points grow. Welder 3.1 propagates the same sizes from an output tile; here every root takes them from the shared
// space.
#ifndef TILEWRIGHT_PLAN_TILING_TILESIZES_H
#define TILEWRIGHT_PLAN_TILING_TILESIZES_H

#include "passes/plan/tiling/gpu/BlockShapes.h"

namespace tilewright {

/// Fills tiles, workgroups, footprint, inputs and outputs of a space whose extents, grid, vector and dims are set.
/// Returns why no tiles fit the target, or nothing.
std::string chooseTiles(const TensorGraph &graph, const GroupChoice &part, const Target &target, IterationSpace &space);

/// The same for a space whose tiles were chosen before, with these tiles in their place.
std::string takeTiles(const TensorGraph &graph, const GroupChoice &part, const Target &target, IterationSpace &space,
                      llvm::ArrayRef<int64_t> tiles);

/// The same on a GPU, with the block of a candidate in place of the space's.
std::string takeBlock(const TensorGraph &graph, const GroupChoice &part, const Target &target, IterationSpace &space,
                      const BlockCandidate &block);

/// The ways in which blocks of a GPU could compute the part, whose space chooseTiles has filled.
std::vector<BlockCandidate> blockCandidates(const TensorGraph &graph, const GroupChoice &part, const Target &target,
                                            IterationSpace space);

/// The block of so many threads that computes such tiles of a part that reduces nothing; nothing if it does.
std::optional<BlockCandidate> blockOfTiles(const TensorGraph &graph, const GroupChoice &part, const Target &target,
                                           IterationSpace space, llvm::ArrayRef<int64_t> tiles, int64_t threads);

/// To begin a tile: its pointers, and what the caches do not hold yet.
inline constexpr double kTileSeconds = 0.2e-6;

} // namespace tilewright

#endif
