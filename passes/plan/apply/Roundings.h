// The rewrites of bodies that decide when a value is rounded to bf16 or f16, and what a subprogram's numerics allow.
#ifndef TILEWRIGHT_PLAN_APPLY_ROUNDINGS_H
#define TILEWRIGHT_PLAN_APPLY_ROUNDINGS_H

#include "dialects/tile/TileDialect.h"
#include "mlir/IR/Builders.h"

namespace tilewright {

/// Whether functions may be approximated.
bool allowsFastMath(tile::SubprogramOp subprogram);

/// Accumulates result `result` of a reduction in `type`, a wider float, and rounds once at the end. Its combiner is one
/// that combiningKind() knows.
void widenAccumulator(tile::ExprOp expr, unsigned result, mlir::Type type);

/// Computes everything on bf16 and f16 in f32, with an arith.truncf after each operation that rounds.
void widenArithmetic(mlir::Block &body);

/// Replaces `extended`, the arith.extf of a rounded value, by the value before its rounding, if there is one in f32.
bool replaceByUnrounded(mlir::Operation *extended);
/// The same if all that reads it may be given that.
bool leaveOutRounding(mlir::Operation *extended);

} // namespace tilewright

#endif
