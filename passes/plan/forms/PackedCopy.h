// The movement that lays weights out, as ops that IREE can compute and graph/ParameterRecipe.h can read.
#ifndef TILEWRIGHT_PLAN_FORMS_PACKEDCOPY_H
#define TILEWRIGHT_PLAN_FORMS_PACKEDCOPY_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tilewright {

/// The tensor with zeros behind its elements; itself where it has the sizes.
mlir::Value padBehind(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value source, llvm::ArrayRef<int64_t> shape);

/// A tensor whose elements are those of the source at `from`, an index for each dim of the source over those of
/// `shape`.
mlir::linalg::GenericOp copyElements(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value source,
                                     llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<mlir::AffineExpr> from);

/// The lines of a tensor's last two dims as shared memory has them: atoms of so many elements change places with the
/// number of the line (graph/SwizzledLayout.h).
mlir::linalg::GenericOp swizzleLines(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value source, int64_t atom);

} // namespace tilewright

#endif
