// Emits the ops of a nest's body at one point of its loops. Ops that are the same for all lanes stay scalar; all others
// become vector ops.
#ifndef TILEWRIGHT_CODEGEN_COMMON_NESTOPS_H
#define TILEWRIGHT_CODEGEN_COMMON_NESTOPS_H

#include "passes/codegen/common/EmitLoops.h"
#include "passes/codegen/common/NestMemory.h"

namespace tilewright {

class NestOps : protected NestMemory {
protected:
  NestOps(mlir::OpBuilder &builder, tile::ComputeOp compute, const NestStructure &nest, const mlir::IRMapping &values,
          VectorShape shape, NestThreads *threads)
      : NestMemory(builder, compute, nest, values, shape, threads), nest(nest) {}

  /// Emits `op` with the operands that `values` maps, and maps its results.
  void emitOp(mlir::Operation &op, mlir::IRMapping &values, mlir::Value mask);

  const NestStructure &nest;
  mlir::Value stores; ///< i1 that is true if this thread stores; null: it always does

private:
  /// Returns true for a vector of indices that is cast to integers. It is computed in the integer type, because lanes
  /// of type index would be twice as wide.
  bool isNumberOfLanes(mlir::arith::IndexCastOp op);
  /// Returns true for a division of all lanes by the same number that may be a multiplication by its reciprocal.
  bool dividesByUniform(mlir::Operation &op);
  mlir::Value multiplyByReciprocal(mlir::Value dividend, mlir::Value divisor);
  /// Returns the larger or the smaller of the accumulator and the value, or the accumulator if the value is NaN.
  mlir::Value emitOrdered(const Extremum &extremum, mlir::IRMapping &values);
  /// Emits a sum of an accumulator and a product as one op, which rounds once, if that is allowed and the machine has such
  /// an instruction. Otherwise, emits nothing and returns null.
  mlir::Value emitFusedSum(mlir::Operation &op, const mlir::IRMapping &values);
  /// Emits a scalar op with vector types.
  void emitElementwise(mlir::Operation &op, mlir::IRMapping &values);
};

} // namespace tilewright

#endif
