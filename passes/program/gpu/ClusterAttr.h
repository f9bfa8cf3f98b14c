// How a tile program says which blocks form a cluster.
#ifndef TILEWRIGHT_PROGRAM_GPU_CLUSTERATTR_H
#define TILEWRIGHT_PROGRAM_GPU_CLUSTERATTR_H

#include "dialects/tile/TileAttributeNames.h"
#include "dialects/tile/TileDialect.h"

namespace tilewright {

/// The attribute's blocks; 1 without it.
inline int64_t clusterOf(mlir::Operation *op) {
  auto blocks = op->getAttrOfType<mlir::IntegerAttr>(kClusterAttr);
  return blocks ? blocks.getInt() : 1;
}

} // namespace tilewright

#endif
