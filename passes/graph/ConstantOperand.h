// Operands of contractions that are known when a program is loaded, such as weights.
#ifndef TILEWRIGHT_GRAPH_CONSTANTOPERAND_H
#define TILEWRIGHT_GRAPH_CONSTANTOPERAND_H

#include "passes/graph/Contraction.h"
#include "passes/graph/TensorGraph.h"
#include <vector>

namespace tilewright {

/// Skips transposes and broadcasts in front of an access, so that a weight that a batch repeats is packed once.
TensorAccess throughCopies(TensorAccess access);

/// Returns true if every index is a dim of the domain or a constant.
bool isProjection(mlir::AffineMap map);

/// Returns the roles of a contraction that a register block can compute and that depends on more than weights.
std::optional<ContractionRoles> blockRoles(const TensorGraph &graph, const std::vector<bool> &atLoad, unsigned expr);

/// Returns true if rhs, the operand along the lanes, is a weight and not a splat.
bool hasConstantLanes(const TensorGraph &graph, const std::vector<bool> &atLoad, unsigned expr,
                      const ContractionRoles &roles);

/// Returns true if the tensor is made of parameters by the steps of a recipe, so that it can be stored in any layout.
bool isMadeOfParameters(mlir::Value tensor);

/// Returns, for every expression, whether it only lays out parameters that `tile-store-weights` stores in that layout.
std::vector<bool> layOutWeights(const TensorGraph &graph);

/// Erases the ops of one input, such as copies, that made a value that is no longer used.
void eraseUnusedProducers(mlir::Value value);

} // namespace tilewright

#endif
