// Arithmetic on regions that move with the tile's index, the inner part of tile propagation.
#ifndef TILEWRIGHT_GRAPH_TILEREGION_H
#define TILEWRIGHT_GRAPH_TILEREGION_H

#include "passes/graph/TilePropagation.h"

namespace tilewright {

/// The grid of tiles that base expressions range over.
struct TileGrid {
  mlir::MLIRContext *context;
  llvm::SmallVector<Interval> index; ///< range of the tile's index, per grid dim
};

TileDim wholeDim(const TileGrid &grid, int64_t extent);

/// Returns the elements that `expr` (over a domain) reaches from a region of the domain, along a tensor dim of `extent`
/// elements. Clears `exact` if the result is only an upper bound.
TileDim imageOf(const TileGrid &grid, mlir::AffineExpr expr, const TileRegion &domain, int64_t extent, bool &exact);

/// Returns the hull of two regions along one dim, or the whole dim if they move differently.
TileDim unite(const TileGrid &grid, const TileDim &a, const TileDim &b, int64_t extent, bool &exact);

/// Returns true if a lies inside b for every tile.
bool contains(const TileGrid &grid, const TileRegion &b, const TileRegion &a);

} // namespace tilewright

#endif
