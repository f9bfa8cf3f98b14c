// The attribute with which a tile program states which blocks form a cluster.
#ifndef TILEWRIGHT_PROGRAM_GPU_CLUSTERATTR_H
#define TILEWRIGHT_PROGRAM_GPU_CLUSTERATTR_H

#include "dialects/tile/TileAttributeNames.h"
#include "dialects/tile/TileDialect.h"

namespace tilewright {

/// Returns the number of blocks that the attribute states; 1 without it.
inline int64_t clusterOf(mlir::Operation *op) {
  auto blocks = op->getAttrOfType<mlir::IntegerAttr>(kClusterAttr);
  return blocks ? blocks.getInt() : 1;
}

} // namespace tilewright

#endif
