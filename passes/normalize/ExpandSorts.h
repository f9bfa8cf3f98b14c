// Sorting as counting: reductions over pairs of elements, which fuse with what surrounds them.
#ifndef TILEWRIGHT_NORMALIZE_EXPANDSORTS_H
#define TILEWRIGHT_NORMALIZE_EXPANDSORTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tilewright {

/// Replaces sorts (iree_linalg_ext.sort) along dims of known length by reductions. The rank of an element is the number
/// of elements in front of it, and the element at a place is the one whose rank it is. Where only the first elements are
/// read (top k) and it takes fewer comparisons, those of each block are found first, and then the first of them.
///
/// Equal elements keep their order. -0 equals 0, and NaN is greater than every number, whichever the comparison is.
void expandSorts(mlir::func::FuncOp function);

} // namespace tilewright

#endif
