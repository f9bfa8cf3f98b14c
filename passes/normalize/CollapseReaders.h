// Moves reshapes behind the elementwise ops that read them.
#ifndef TILEWRIGHT_NORMALIZE_COLLAPSEREADERS_H
#define TILEWRIGHT_NORMALIZE_COLLAPSEREADERS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace tilewright {

/// Marks the reshape of a contraction's result for collapseReaders(). A mark goes with an op that is erased, whereas
/// another op may take its place in memory.
void markReshape(mlir::tensor::ExpandShapeOp reshape);

/// Computes elementwise ops that read a marked reshape over the dims of its source, and reshapes their results. So the
/// ops that follow a contraction have its dims, and its tiles fit them. Ops whose other operands vary along only a part
/// of the dims that the reshape splits are left alone. Removes the marks.
void collapseReaders(mlir::func::FuncOp function);

} // namespace tilewright

#endif
