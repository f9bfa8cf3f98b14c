// Sums of squared differences, as a variance has them.
#ifndef TILEWRIGHT_GRAPH_SUMOFSQUARES_H
#define TILEWRIGHT_GRAPH_SUMOFSQUARES_H

#include "passes/graph/TensorGraph.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tilewright {

/// The operands of a sum of (x - b)^2.
struct SquaredDifference {
  mlir::Value x;       ///< read at the sum's own points
  mlir::OpOperand *b;  ///< operand of the subtraction
  mlir::linalg::GenericOp square, subtraction;
};

/// Returns the tensor whose elements are extended to wider floats to give this one, or the tensor itself. Frontends
/// extend narrow floats before they sum them.
mlir::Value beforeExtension(mlir::Value tensor);

/// Returns true if the op only adds up the elements of its only input, from zero.
bool isPlainSum(mlir::linalg::GenericOp sum);

/// Returns the operands of a sum of (x - b)^2, or nothing if the op is none.
std::optional<SquaredDifference> squaredDifference(mlir::linalg::GenericOp sum);

/// Returns the sum that b is computed from, if the expression is a sum of (x - b)^2 in one type and b depends on
/// nothing but that sum over the same domain (usually as the mean of x); else -1.
int64_t totalOfSquares(const TensorGraph &graph, unsigned squares);

} // namespace tilewright

#endif
