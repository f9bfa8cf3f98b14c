// Where a body rounds to bf16 or f16, and who may be given a value as it is before its rounding. Bodies are those of
// linalg ops and of tile.expr, whose narrow arithmetic may be written as such or as f32 arithmetic between arith.extf
// and arith.truncf.
#ifndef TILEWRIGHT_GRAPH_ROUNDING_H
#define TILEWRIGHT_GRAPH_ROUNDING_H

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/graph/TensorExpr.h"

namespace tilewright {

/// bf16 or f16: arithmetic on it is done in f32 and rounded.
bool isNarrowFloat(mlir::Type type);

/// The combiner of accumulator `arg` if the body is `arg <op> value` for an op that may be regrouped over lanes.
std::optional<mlir::vector::CombiningKind> combiningKind(mlir::BlockArgument arg, mlir::Value yielded);
bool isSumOrProduct(std::optional<mlir::vector::CombiningKind> kind);
/// The combiner of each result of a reduction.
llvm::SmallVector<std::optional<mlir::vector::CombiningKind>> combiningKinds(const TensorExpr &expr);

/// The body argument that stands for an element of an input; null where the op only moves it.
mlir::BlockArgument elementOf(const TensorExpr &expr, unsigned input);

/// Whether an op does arithmetic on narrow floats, which f32 has to be used for.
bool computesNarrow(mlir::Operation *op);
/// Whether an op of narrow floats gives one of their values again, so that its result needs no rounding.
bool isExact(mlir::Operation *op);

/// Whether everything that computes with a narrow value may be given a closer one instead. Comparisons of two values,
/// roundings to integers and accumulated extrema may not: what is equal, or where a maximum stands, would change with
/// what was fused.
bool toleratesUnrounded(mlir::Value value);

/// Whether a body rounds the value to an integer: the last bit decides to which one.
bool isRoundedToInteger(mlir::Value value);

/// Roundings inside a body that need not be made: of values that only arithmetic of the same body reads.
int64_t countAvoidableRoundings(mlir::Block &body);

} // namespace tilewright

#endif
