// Constant operands of contractions that are stored in global memory in the layout that their tiles have in shared
// memory, swizzle included, so that each step of a tile is one bulk copy. The tensor has the shape steps x lines x K
// per step. Each lane (N) has a line; lines are padded so that every tile is complete, and K is padded with zeros.
#ifndef TILEWRIGHT_GRAPH_SWIZZLEDLAYOUT_H
#define TILEWRIGHT_GRAPH_SWIZZLEDLAYOUT_H

#include "dialects/tile/TileAttributeNames.h"
#include "passes/target/AccessBytes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include <optional>

namespace tilewright {

/// Bytes that a swizzle moves as a unit, which are copied and read at once.
inline constexpr int64_t kSwizzleAtomBytes = kAtomBytes;
/// Period, in lines, of the widest swizzle (128 bytes), and therefore also of those of 64 and 32 bytes.
inline constexpr int64_t kSwizzleLines = 8;

struct SwizzledShape {
  int64_t lines, step;
};

/// Reads the attribute; returns nothing if it is missing or malformed.
inline std::optional<SwizzledShape> swizzledShapeOf(mlir::Operation *contraction) {
  auto shape = contraction->getAttrOfType<mlir::DenseI64ArrayAttr>(kSwizzledAttr);
  if (!shape || shape.size() != 2)
    return std::nullopt;
  return SwizzledShape{shape[0], shape[1]};
}

} // namespace tilewright

#endif
