// The ops of a nest's body at one point of its loops: scalars as they are, the others on all lanes at once.
#ifndef TILEWRIGHT_CODEGEN_COMMON_NESTOPS_H
#define TILEWRIGHT_CODEGEN_COMMON_NESTOPS_H

#include "passes/codegen/common/NestMemory.h"

namespace tilewright {

class NestOps : protected NestMemory {
protected:
  NestOps(mlir::OpBuilder &builder, tile::ComputeOp compute, const NestStructure &nest, const mlir::IRMapping &values,
          VectorShape shape, NestThreads *threads)
      : NestMemory(builder, compute, nest, values, shape, threads), nest(nest) {}

  /// Emits `op` on what `values` has for its operands, and adds its results to them.
  void emitOp(mlir::Operation &op, mlir::IRMapping &values, mlir::Value mask);
  /// Where there is no condition, always.
  void onlyIf(mlir::Value condition, llvm::function_ref<void()> emit);

  const NestStructure &nest;
  mlir::Value stores; ///< whether this thread stores, an i1; null: it does

private:
  /// An index that is wanted as an integer is computed as one: lanes of index would be twice as wide.
  bool isNumberOfLanes(mlir::arith::IndexCastOp op);
  /// Whether all lanes, and further iterations, divide by one number, and may multiply by its reciprocal.
  bool dividesByUniform(mlir::Operation &op);
  mlir::Value multiplyByReciprocal(mlir::Value dividend, mlir::Value divisor);
  /// The larger or smaller of the accumulator and the value; the accumulator if the value is NaN.
  mlir::Value emitOrdered(const Extremum &extremum, mlir::IRMapping &values);
  /// Lanes past the end and unread elements are zero, and an integer division by zero would trap: divide by one there.
  mlir::Value safeDivisor(mlir::Value divisor);
  /// A scalar op on lanes: the same op with vector types.
  void emitElementwise(mlir::Operation &op, mlir::IRMapping &values);
};

} // namespace tilewright

#endif
