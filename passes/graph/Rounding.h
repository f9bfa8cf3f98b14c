// Roundings to bf16 or f16 in a body, and the ops that may be given a value without its rounding. Bodies are those of
// linalg ops and of tile.expr; their narrow arithmetic may be written directly, or as f32 arithmetic between arith.extf
// and arith.truncf.
#ifndef TILEWRIGHT_GRAPH_ROUNDING_H
#define TILEWRIGHT_GRAPH_ROUNDING_H

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/graph/TensorExpr.h"

namespace tilewright {

/// Returns true for bf16 and f16, whose arithmetic is done in f32 and rounded.
bool isNarrowFloat(mlir::Type type);

/// Returns the combiner of accumulator `arg` if the body is `arg <op> value` for an op that may be regrouped over
/// lanes.
std::optional<mlir::vector::CombiningKind> combiningKind(mlir::BlockArgument arg, mlir::Value yielded);
bool isSumOrProduct(std::optional<mlir::vector::CombiningKind> kind);
/// Returns the combiner of each result of a reduction.
llvm::SmallVector<std::optional<mlir::vector::CombiningKind>> combiningKinds(const TensorExpr &expr);

/// Returns the body argument that is an element of an input; null if the op has no body.
mlir::BlockArgument elementOf(const TensorExpr &expr, unsigned input);

/// Returns true if an op does arithmetic on narrow floats, which has to be done in f32.
bool computesNarrow(mlir::Operation *op);
/// Returns true if an op on narrow floats returns one of their values, so that its result needs no rounding.
bool isExact(mlir::Operation *op);

/// Returns true if everything that computes with a narrow value may be given a more accurate one instead. Comparisons
/// of two values, roundings to integers and accumulated extrema may not: equality, or the position of a maximum, would
/// depend on what was fused.
bool toleratesUnrounded(mlir::Value value);

/// Returns true if a body rounds the value to an integer, because then its last bit can decide which integer it is.
bool isRoundedToInteger(mlir::Value value);

/// Counts the roundings of a body that can be skipped: those of values that only arithmetic of the same body reads.
int64_t countAvoidableRoundings(mlir::Block &body);

} // namespace tilewright

#endif
