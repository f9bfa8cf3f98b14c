// Rewrites of bodies that determine when a value is rounded to bf16 or f16, as a subprogram's numerics allow.
#ifndef TILEWRIGHT_NORMALIZE_ROUNDINGS_H
#define TILEWRIGHT_NORMALIZE_ROUNDINGS_H

#include "dialects/tile/TileDialect.h"
#include "mlir/IR/Builders.h"

namespace tilewright {

/// Returns true if functions may be approximated.
bool allowsFastMath(tile::SubprogramOp subprogram);

/// Accumulates result `result` of a reduction in `type`, a wider float, and rounds once at the end. Its combiner must
/// be one that combiningKind() knows.
void widenAccumulator(tile::ExprOp expr, unsigned result, mlir::Type type);

/// Computes all bf16 and f16 arithmetic in f32, with an arith.truncf after each operation that rounds.
void widenArithmetic(mlir::Block &body);

/// Replaces `extended`, the arith.extf of a rounded value, by the value before its rounding, if that is an f32 value.
bool replaceByUnrounded(mlir::Operation *extended);
/// Does the same if all readers tolerate the unrounded value.
bool leaveOutRounding(mlir::Operation *extended);

} // namespace tilewright

#endif
