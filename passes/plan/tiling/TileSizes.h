// Chooses tile sizes, workgroups and the footprint of an iteration space. Dims outside the grid are whole in each tile.
// Grid dims start with tiles of one point, and the target's backend chooses larger ones (passes/backend). Welder 3.1
// propagates tile sizes from an output; here all roots take them from the shared space.
#ifndef TILEWRIGHT_PLAN_TILING_TILESIZES_H
#define TILEWRIGHT_PLAN_TILING_TILESIZES_H

#include "passes/plan/tiling/gpu/BlockShapes.h"

namespace tilewright {

/// Sets tiles, workgroups, footprint, inputs and outputs of a space whose extents, grid, vector and dims are set.
/// Returns why no tiles fit the target, or an empty string.
std::string chooseTiles(const TensorGraph &graph, const GroupChoice &group, const Target &target,
                        IterationSpace &space);

/// Sets these tiles in a space that chooseTiles has filled, and all that follows from them. Returns the same as
/// chooseTiles.
std::string takeTiles(const TensorGraph &graph, const GroupChoice &group, const Target &target, IterationSpace &space,
                      llvm::ArrayRef<int64_t> tiles);

/// Does so on a GPU, with the block of a candidate.
std::string takeBlock(const TensorGraph &graph, const GroupChoice &group, const Target &target, IterationSpace &space,
                      const BlockCandidate &block);

/// Returns the blocks of a GPU that could compute the group. chooseTiles must have filled the space.
std::vector<BlockCandidate> blockCandidates(const TensorGraph &graph, const GroupChoice &group, const Target &target,
                                            IterationSpace space);

/// Returns the block of `threads` threads that computes these tiles, or nothing if the group contracts or reduces.
std::optional<BlockCandidate> blockOfTiles(const TensorGraph &graph, const GroupChoice &group, const Target &target,
                                           IterationSpace space, llvm::ArrayRef<int64_t> tiles, int64_t threads);

} // namespace tilewright

#endif
