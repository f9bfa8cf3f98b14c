// Integer divisions that cannot trap.
#ifndef TILEWRIGHT_PASSES_SUPPORT_DIVISIONS_H
#define TILEWRIGHT_PASSES_SUPPORT_DIVISIONS_H

#include "mlir/IR/Builders.h"

namespace tilewright {
/// Returns true for divisions and remainders of integers, which trap on x86 for a divisor of zero, and for the least
/// signed number divided by -1.
bool isIntegerDivision(mlir::Operation &op);

/// Returns a divisor by which `division` divides `dividend` without a trap: 1 where `divisor` would trap, which gives
/// the dividend, and the remainder 0. For -1 these are the values that wrap around. Both are integers or vectors of
/// the same type; a constant divisor that never traps is returned itself.
mlir::Value createSafeDivisor(mlir::OpBuilder &builder, mlir::Operation &division, mlir::Value dividend,
                              mlir::Value divisor);
} // namespace tilewright

#endif
