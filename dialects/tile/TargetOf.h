// The target of a tile program or kernel function that is one of several variants.
#ifndef TILEWRIGHT_DIALECTS_TILE_TARGETOF_H
#define TILEWRIGHT_DIALECTS_TILE_TARGETOF_H

#include "dialects/tile/TileAttributeNames.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include <string>

namespace tilewright {

/// Returns the name or file of the target that a program or function is for; `otherwise` if it does not state one.
inline std::string targetOf(mlir::Operation *op, const std::string &otherwise) {
  auto own = op->getAttrOfType<mlir::StringAttr>(kTargetAttr);
  return own ? own.getValue().str() : otherwise;
}

} // namespace tilewright

#endif
