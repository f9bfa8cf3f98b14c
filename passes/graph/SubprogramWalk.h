// The reduced dim that the tiles of a subprogram walk block by block (ReducedWalk).
#ifndef TILEWRIGHT_GRAPH_SUBPROGRAMWALK_H
#define TILEWRIGHT_GRAPH_SUBPROGRAMWALK_H

#include "dialects/tile/TileDialect.h"
#include "passes/graph/ReducedWalk.h"

namespace tilewright {

/// Returns the dim that the tiles of a space walk: the dim outside the grid whose tile is smaller than its extent; -1:
/// none.
int64_t walkedDim(llvm::ArrayRef<int64_t> extents, llvm::ArrayRef<int64_t> tiles, llvm::ArrayRef<int64_t> grid);

/// Decides how the expressions of a subprogram, which are all roots, take part in walking `dim`, or why they cannot.
Walk walkAlong(tile::SubprogramOp subprogram, int64_t dim);

} // namespace tilewright

#endif
