// Operands of contractions that are known when a program is loaded, as weights are.
#ifndef TILEWRIGHT_GRAPH_CONSTANTOPERAND_H
#define TILEWRIGHT_GRAPH_CONSTANTOPERAND_H

#include "passes/graph/Contraction.h"
#include "passes/graph/TensorGraph.h"
#include <vector>

namespace tilewright {

/// The access without transposes and broadcasts in front of it: what a batch repeats is packed once.
TensorAccess throughCopies(TensorAccess access);

/// Whether every index is a dim of the domain, or a single point.
bool isProjection(mlir::AffineMap map);

/// The roles of a contraction that a register block can compute and that does not depend on weights alone.
std::optional<ContractionRoles> blockRoles(const TensorGraph &graph, const std::vector<bool> &atLoad, unsigned expr);

/// Whether the operand that lies along the lanes is a weight, and no splat.
bool hasConstantLanes(const TensorGraph &graph, const std::vector<bool> &atLoad, unsigned expr,
                      const ContractionRoles &roles);

/// Whether nothing but movement makes the tensor of parameters, so that it can be stored in any layout.
bool isMadeOfParameters(mlir::Value tensor);

/// For every expression, whether it does nothing but lay parameters out as `tile-store-weights` has them stored.
std::vector<bool> layOutWeights(const TensorGraph &graph);

/// Erases what made a value that nobody reads any more.
void eraseUnused(mlir::Value value);

} // namespace tilewright

#endif
