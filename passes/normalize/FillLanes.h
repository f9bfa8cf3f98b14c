// Finds contractions that leave vector lanes empty, and rewrites them so that another dim fills the lanes.
#ifndef TILEWRIGHT_NORMALIZE_FILLLANES_H
#define TILEWRIGHT_NORMALIZE_FILLLANES_H

#include "passes/graph/TensorGraph.h"
#include "passes/target/CostParameters.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tilewright {

/// How well a contraction fills the lanes of its register block.
enum class AlongLanes { much, few, nothing };

/// Returns `nothing` if both operands or neither vary along the innermost dim of the result, or if the contraction
/// multiplies a vector with a matrix that is contiguous along K and cannot be packed at compile time. Returns `few` if
/// N has few elements and K is long.
AlongLanes whatLiesAlongLanes(const TensorGraph &graph, const std::vector<bool> &atLoad, unsigned id,
                              const CpuCosts &costs);

/// Returns true if no dim of a contraction can be its columns (N), as in a product of a row with a column: both
/// operands or neither vary along each dim of the result that could be innermost.
bool hasNoColumns(const TensorGraph &graph, const std::vector<bool> &atLoad, unsigned id, const CpuCosts &costs);

/// Returns the dim of the result that would fill the lanes best if it were the innermost, preferring dims that are the
/// innermost of an operand. Returns nothing if the contraction lacks M or N, or does not start from a constant: the
/// start would have to be transposed, too.
std::optional<unsigned> lanesElsewhere(mlir::linalg::LinalgOp op, const CpuCosts &costs);

/// Transposes the contraction's operands so that K is innermost and vectors along K are contiguous. Returns the new
/// contraction.
mlir::linalg::LinalgOp alongK(mlir::linalg::LinalgOp op);

/// Makes `lane` the innermost dim of the contraction's result, which is transposed back behind it.
void turnResult(mlir::linalg::LinalgOp op, unsigned lane);

} // namespace tilewright

#endif
