// Constant operands of contractions that lie in global memory as their tiles do in shared memory, swizzle included, so
// that a step of a tile is one bulk copy. The tensor is steps x lines x terms of a step: a line for each lane of the
// contraction, filled up so that every tile has all of its lines, and zeros where there are no terms.
#ifndef TILEWRIGHT_GRAPH_SWIZZLEDLAYOUT_H
#define TILEWRIGHT_GRAPH_SWIZZLEDLAYOUT_H

#include "dialects/tile/TileAttributeNames.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include <optional>

namespace tilewright {

/// What a swizzle moves: bytes that are copied and read at once.
inline constexpr int64_t kSwizzleAtomBytes = 16;
/// Lines after which the widest swizzle, of 128 bytes, repeats; and so do those of 64 and 32.
inline constexpr int64_t kSwizzleLines = 8;

struct SwizzledShape {
  int64_t lines, step;
};

/// As the attribute says; nothing without one, or where it is none.
inline std::optional<SwizzledShape> swizzledShapeOf(mlir::Operation *contraction) {
  auto shape = contraction->getAttrOfType<mlir::DenseI64ArrayAttr>(kSwizzledAttr);
  if (!shape || shape.size() != 2)
    return std::nullopt;
  return SwizzledShape{shape[0], shape[1]};
}

} // namespace tilewright

#endif
