// Tensors of all layers of a stack, which have the layers as their first dim.
#ifndef TILEWRIGHT_NORMALIZE_LAYERS_STACKEDTENSORS_H
#define TILEWRIGHT_NORMALIZE_LAYERS_STACKEDTENSORS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace tilewright {

inline mlir::RankedTensorType typeOf(mlir::Value tensor) {
  return mlir::cast<mlir::RankedTensorType>(tensor.getType());
}

/// Returns the type with one more dim, which comes first.
mlir::RankedTensorType withFirst(int64_t size, mlir::RankedTensorType type);

/// Reshapes a tensor to a type whose shape refines its own, or the other way round.
mlir::Value reshape(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, mlir::RankedTensorType type);

/// Returns the value that the reshapes in front of this one read, and with `alsoRoundings` those to 16 bits, too.
mlir::Value beforeReshapes(mlir::Value value, bool alsoRoundings);

/// Returns `count` elements from `first` on along the first dim, and all along the others.
mlir::Value rows(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value whole, mlir::OpFoldResult first,
                 int64_t count);

/// Returns tensors one after another along a new first dim.
mlir::Value sideBySide(mlir::OpBuilder &builder, mlir::Location loc, llvm::ArrayRef<mlir::Value> tensors);

/// Returns a part of a tensor. If elementwise ops compute the tensor, it is computed from parts of their operands, so
/// that a reader of several parts, such as the gates of a cell, needs no buffer with all of them.
mlir::Value sliceOf(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value whole, llvm::ArrayRef<int64_t> offsets,
                    llvm::ArrayRef<int64_t> sizes);

/// Returns the type of the elements of a tensor before they are widened, if all that happens otherwise is movement.
mlir::Type narrowElement(mlir::Value tensor);

/// Returns the op that rounds the elements of a tensor to a narrower type, if nothing but reshapes in front of it reads
/// the tensor, or null.
mlir::linalg::LinalgOp onlyRounding(mlir::Value tensor);

/// Returns the tensor in its narrower type, if it only moves elements that an op has widened, or itself.
mlir::Value withoutWidening(mlir::OpBuilder &builder, mlir::Value tensor);

} // namespace tilewright

#endif
