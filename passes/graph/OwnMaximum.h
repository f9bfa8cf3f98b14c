// Differences of a tensor and its own maximum. They are never positive, so their exponential is at most 1.
#ifndef TILEWRIGHT_GRAPH_OWNMAXIMUM_H
#define TILEWRIGHT_GRAPH_OWNMAXIMUM_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tilewright {

/// Returns the value that `value` is a reshape of, or the value itself.
mlir::Value behindViews(mlir::Value value);

/// Returns the operand that a value of the body is an element of, or null.
mlir::OpOperand *inputOf(mlir::linalg::LinalgOp op, mlir::Value element);

/// Returns the generic that computes each element of `value`, its only result, from inputs, or null.
mlir::linalg::GenericOp elementwiseOp(mlir::Value value);

/// Returns true if `difference`, in the body of `op`, is x - m, where m is the maximum of that same x over some of its
/// dims and both belong to the same point.
bool isBelowOwnMaximum(mlir::linalg::LinalgOp op, mlir::arith::SubFOp difference);

/// Returns true if `op` is a maximum that is only ever subtracted from the tensor it is the maximum of.
bool isOnlyTakenOffItsOwn(mlir::linalg::LinalgOp op);

} // namespace tilewright

#endif
