// Builds the movement that lays out weights from ops that IREE can compute and graph/ParameterRecipe.h can read.
#ifndef TILEWRIGHT_NORMALIZE_PACKEDCOPY_H
#define TILEWRIGHT_NORMALIZE_PACKEDCOPY_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tilewright {

/// Pads a tensor to `shape` with zeros behind its elements, or returns it if it already has that shape.
mlir::Value padBehind(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value source, llvm::ArrayRef<int64_t> shape);

/// Creates a tensor of `shape` whose elements are those of the source at `from`, which has an index over the dims of
/// `shape` for each dim of the source.
mlir::linalg::GenericOp copyElements(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value source,
                                     llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<mlir::AffineExpr> from);

/// Swizzles the lines of a tensor's last two dims as shared memory does: atoms of `atom` elements are permuted within a
/// line, depending on the number of the line (graph/SwizzledLayout.h).
mlir::linalg::GenericOp swizzleLines(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value source, int64_t atom);

} // namespace tilewright

#endif
