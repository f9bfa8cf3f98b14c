// The tile sizes and loop orders of a root, as its code has them. They follow from the group's tiles and grid, and from
// the micro kernel with its block of K; a plan states them, and may state nothing else.
#ifndef TILEWRIGHT_PLAN_SPACE_OPTILINGS_H
#define TILEWRIGHT_PLAN_SPACE_OPTILINGS_H

#include "passes/plan/ir/Plan.h"
#include "passes/plan/space/IterationSpace.h"

namespace tilewright {

/// Returns the tile of a root. The loops over the grid are outermost. `dims` has the dim of the space for each of its
/// dims, or -1.
LevelTiling blockTiling(llvm::ArrayRef<int64_t> tiles, llvm::ArrayRef<int64_t> grid, llvm::ArrayRef<int64_t> dims);

/// Returns the sizes that one step of a contraction's micro kernel covers, and the order of the loops around it inside
/// a tile. `label` names the block of K, if there is one. Without a blocking, a register block has the vectors that would
/// be chosen for it.
LevelTiling registerTiling(const TensorGraph &graph, const GroupRoot &root, llvm::ArrayRef<int64_t> dims,
                           llvm::ArrayRef<int64_t> tiles, const MicroKernel &kernel, llvm::StringRef label,
                           const std::optional<BlockingChoice> &blocking, const Target &target);

} // namespace tilewright

#endif
