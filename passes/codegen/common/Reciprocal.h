// Division of many numbers by one: x / d as (x * scale) * (1 / (d * scale)), wrong by one unit in the last place at
// most, in a tenth of the time. The scale is a power of two that keeps the reciprocal clear of overflow and of denormal
// numbers.
#ifndef TILEWRIGHT_CODEGEN_COMMON_RECIPROCAL_H
#define TILEWRIGHT_CODEGEN_COMMON_RECIPROCAL_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace tilewright {

struct ScaledReciprocal {
  mlir::Value scale, reciprocal;
};

/// Whether the division is one of f32 or f64 that may be done so.
bool allowsReciprocal(mlir::arith::DivFOp division);
ScaledReciprocal reciprocalOf(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value divisor);

} // namespace tilewright

#endif
