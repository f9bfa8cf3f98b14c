// Accesses to the sources of movement: what an expression reads once the reshapes, transposes and copies in front of it
// are part of its index.
#ifndef TILEWRIGHT_GRAPH_MOVEMENTSOURCE_H
#define TILEWRIGHT_GRAPH_MOVEMENTSOURCE_H

#include "passes/graph/TensorGraph.h"

namespace tilewright {

/// Returns a reader's access to the source of the movement that makes the tensor of `access`. Movement with a guard or
/// several inputs, or for which `passes` is false, is a source itself.
TensorAccess accessBehind(const TensorGraph &graph, const TensorExpr &reader, const TensorAccess &access,
                          llvm::function_ref<bool(unsigned expr)> passes);

/// Returns the dim of the reader along which the accessed tensor is contiguous, possibly within blocks; -1 if there is
/// none.
int64_t contiguousDim(const TensorAccess &access);

} // namespace tilewright

#endif
