// The bytes of a tensor's elements in memory.
#ifndef TILEWRIGHT_GRAPH_ELEMENTBYTES_H
#define TILEWRIGHT_GRAPH_ELEMENTBYTES_H

#include "dialects/tile/TileDialect.h"
#include "mlir/IR/BuiltinTypes.h"

namespace tilewright {

/// Returns the bytes of one element of a tensor.
inline int64_t elementBytesOf(mlir::Value tensor) {
  return tile::elementBytes(mlir::cast<mlir::RankedTensorType>(tensor.getType()).getElementType());
}

} // namespace tilewright

#endif
