// Constant matrices of two numbers, one on either side of a diagonal, as exports of causal models have them for masks.
#ifndef TILEWRIGHT_GRAPH_TRIANGLES_H
#define TILEWRIGHT_GRAPH_TRIANGLES_H

#include "mlir/IR/Value.h"
#include <optional>

namespace tilewright {

/// In its last two dims i and j a tensor is `above` where j - i is at least `diagonal`, else `below`; the others are of
/// one point.
struct Triangles {
  int64_t diagonal;
  double below, above;
};

/// Read off the values of a constant, or off the attribute of what loads it.
std::optional<Triangles> trianglesOf(mlir::Value tensor);

} // namespace tilewright

#endif
