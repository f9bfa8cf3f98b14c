// The two rewrites on tile.expr that everything else is made of: raising an op to it, and folding a producer into it.
#ifndef TILEWRIGHT_PLAN_APPLY_EXPRREWRITER_H
#define TILEWRIGHT_PLAN_APPLY_EXPRREWRITER_H

#include "dialects/tile/TileDialect.h"
#include "mlir/IR/Builders.h"
#include "passes/graph/TensorExpr.h"

namespace tilewright {

/// Creates the tile.expr that computes what `expr.op` computes, at the builder's insertion point, reading `inputs`
/// (one per expr.inputs). Scalars the body captures must be constants and are cloned into it. The op itself is kept.
/// Failure with a reason when the body cannot be carried over (e.g. a reduction whose init is not a constant).
mlir::FailureOr<tile::ExprOp> raise(mlir::OpBuilder &builder, const TensorExpr &expr, mlir::ValueRange inputs,
                                    std::string *reason = nullptr);

/// Vertical transformation (Souffle 6.2): a copy of `consumer` that computes the elements of input `input` itself,
/// from the inputs of its one-relies-on-one producer, by composing maps and guards. Always exact. The producer stays.
/// Inputs that become equal (same tensor, map, guard) are merged. With `unrounded` f32 arithmetic of the consumer gets
/// the element as it is before the producer rounds it to bf16 or f16.
tile::ExprOp inlineProducer(mlir::OpBuilder &builder, tile::ExprOp consumer, unsigned input, tile::ExprOp producer,
                            unsigned producerResult, bool unrounded = false);

} // namespace tilewright

#endif
