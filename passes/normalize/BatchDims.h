// Batch dims of contractions as the graph has them. Front ends lay them together for a batched matmul, and apart again
// for what follows it, as the heads of an attention; tiles of both are the same only where the dims are.
#ifndef TILEWRIGHT_NORMALIZE_BATCHDIMS_H
#define TILEWRIGHT_NORMALIZE_BATCHDIMS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tilewright {

/// Has contractions that kernels can take read past the reshapes that lay batch dims of both operands together, or of
/// one where a reader lays those of the result apart, and removes reshapes that lay those of their results, or of what
/// is elementwise behind them, apart.
void keepBatchDimsApart(mlir::func::FuncOp function);

} // namespace tilewright

#endif
