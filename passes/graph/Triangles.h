// Constant matrices that hold one number on either side of a diagonal, as exports of causal models use them for masks.
#ifndef TILEWRIGHT_GRAPH_TRIANGLES_H
#define TILEWRIGHT_GRAPH_TRIANGLES_H

#include "mlir/IR/Value.h"
#include <optional>

namespace tilewright {

/// A tensor whose elements are `above` where j - i >= `diagonal` for its last two dims i and j, and `below` elsewhere.
/// All other dims have one point.
struct Triangles {
  int64_t diagonal;
  double below, above;
};

/// Reads the triangles from the values of a constant, or from the attribute of the op that loads it.
std::optional<Triangles> trianglesOf(mlir::Value tensor);

} // namespace tilewright

#endif
