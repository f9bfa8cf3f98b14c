// Differences of a tensor and its own maximum, which no exponential makes large.
#ifndef TILEWRIGHT_GRAPH_OWNMAXIMUM_H
#define TILEWRIGHT_GRAPH_OWNMAXIMUM_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tilewright {

/// What `value` shows of, without reshapes.
mlir::Value behindViews(mlir::Value value);

/// The operand that a value of the body is an element of, or null.
mlir::OpOperand *inputOf(mlir::linalg::LinalgOp op, mlir::Value element);

/// Whether `difference`, in the body of `op`, is x - m, with m the maximum of that very x over some of its dims, both
/// of the same point.
bool isBelowOwnMaximum(mlir::linalg::LinalgOp op, mlir::arith::SubFOp difference);

/// Whether `op` is a maximum that is only ever taken off what it is the maximum of.
bool isOnlyTakenOffItsOwn(mlir::linalg::LinalgOp op);

} // namespace tilewright

#endif
