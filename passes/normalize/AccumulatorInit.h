// What sums start from. A register block, and a reduction over lanes, start from a number; what else the graph starts
// from is added to the sums.
#ifndef TILEWRIGHT_NORMALIZE_ACCUMULATORINIT_H
#define TILEWRIGHT_NORMALIZE_ACCUMULATORINIT_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tilewright {

/// Whether the op's one result starts from zero everywhere.
bool startsFromZero(mlir::linalg::LinalgOp op);

/// A tensor of zeros.
mlir::Value zeros(mlir::OpBuilder &builder, mlir::Location loc, llvm::ArrayRef<int64_t> shape, mlir::Type element);

/// `sums`, read at `read` and of the type of the op's result or of f32, and what the result of `op` starts from;
/// rounded to the type of the result.
mlir::linalg::GenericOp addStart(mlir::OpBuilder &builder, mlir::linalg::LinalgOp op, mlir::Value sums,
                                 mlir::AffineMap read);

} // namespace tilewright

#endif
