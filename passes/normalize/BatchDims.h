// Undoes the merging of batch dims around contractions. Front ends collapse several batch dims, such as the heads of an
// attention, into one for a batched matmul, and expand them again behind it. Tiles of the matmul and of its neighbours
// agree only if the dims do.
#ifndef TILEWRIGHT_NORMALIZE_BATCHDIMS_H
#define TILEWRIGHT_NORMALIZE_BATCHDIMS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tilewright {

/// Rewrites contractions that kernels can take so that they read their operands in front of the reshapes that collapse
/// the batch dims of both operands, or of one if a reader expands those of the result. Removes the reshapes that expand
/// the dims of their results, and of elementwise ops behind them.
void keepBatchDimsApart(mlir::func::FuncOp function);

} // namespace tilewright

#endif
