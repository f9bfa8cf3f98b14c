// The two basic rewrites of tile.expr: raising an op to a tile.expr, and inlining a producer into its consumer.
#ifndef TILEWRIGHT_PLAN_APPLY_EXPRREWRITER_H
#define TILEWRIGHT_PLAN_APPLY_EXPRREWRITER_H

#include "dialects/tile/TileDialect.h"
#include "mlir/IR/Builders.h"
#include "passes/graph/TensorExpr.h"

namespace tilewright {

/// Creates a tile.expr that computes the same as `expr.op` at the builder's insertion point. It reads `inputs`, one per
/// expr.inputs. Scalars that the body captures must be constants and are cloned into it. The op itself is kept. Fails
/// and sets `reason` if the body cannot be raised, for example a reduction whose init is not a constant.
mlir::FailureOr<tile::ExprOp> raise(mlir::OpBuilder &builder, const TensorExpr &expr, mlir::ValueRange inputs,
                                    std::string *reason = nullptr);

/// Creates a copy of `consumer` that computes the elements of input `input` itself from the inputs of its
/// one-relies-on-one producer, by composing maps and guards (vertical transformation, Souffle 6.2). The result is
/// always exact, and the producer is kept. Inputs that become equal (same tensor, map, guard) are merged. With
/// `unrounded`, f32 arithmetic of the consumer reads the element before the producer rounds it to bf16 or f16.
tile::ExprOp inlineProducer(mlir::OpBuilder &builder, tile::ExprOp consumer, unsigned input, tile::ExprOp producer,
                            unsigned producerResult, bool unrounded = false);

} // namespace tilewright

#endif
