// Start values of accumulators. A register block, and a reduction over lanes, start from a number. Any other start of
// the graph, such as a bias, is added to the result by an elementwise op.
#ifndef TILEWRIGHT_NORMALIZE_ACCUMULATORINIT_H
#define TILEWRIGHT_NORMALIZE_ACCUMULATORINIT_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tilewright {

/// Creates a tensor of zeros.
mlir::Value zeros(mlir::OpBuilder &builder, mlir::Location loc, llvm::ArrayRef<int64_t> shape, mlir::Type element);

/// Creates an elementwise op that adds the start of `op` to `sums` and rounds to the type of `op`'s result. `sums`, in
/// that type or in f32, is the result of `op` computed from zero; `read` maps the result's dims to it.
mlir::linalg::GenericOp addStart(mlir::OpBuilder &builder, mlir::linalg::LinalgOp op, mlir::Value sums,
                                 mlir::AffineMap read);

} // namespace tilewright

#endif
