// Sorting as counting: reductions over pairs of elements, which fuse with what surrounds them.
#ifndef TILEWRIGHT_NORMALIZE_EXPANDSORTS_H
#define TILEWRIGHT_NORMALIZE_EXPANDSORTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tilewright {

/// Replaces sorts (iree_linalg_ext.sort) along dims of known length by reductions, and searches for the first elements
/// (iree_linalg_ext.topk). The rank of an element is the number of elements in front of it, and the element at a place
/// is the one whose rank it is. Where only the first elements are read (top k) and it takes fewer comparisons, those of
/// each block are found first, and then the first of them.
///
/// Equal elements keep their order, also in sorts that stay ops of IREE: those of rows of unknown length, and those that
/// compare floats of several operands as they are. If an op only compares elements of one operand, -0 equals 0, and NaN
/// is greater than every number. Any other comparison is computed as it stands, and a search has XLA's order, of signs
/// and magnitudes.
void expandSorts(mlir::func::FuncOp function);

} // namespace tilewright

#endif
