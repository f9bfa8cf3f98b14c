// Moves reshapes behind the elementwise ops that read them.
#ifndef TILEWRIGHT_NORMALIZE_COLLAPSEREADERS_H
#define TILEWRIGHT_NORMALIZE_COLLAPSEREADERS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace tilewright {

/// Computes elementwise ops that read one of these reshapes over the dims of its source, and reshapes their results. So
/// the ops that follow a contraction have its dims, and its tiles fit them. Ops whose other operands vary along only a
/// part of the dims that the reshape splits are left alone.
void collapseReaders(mlir::func::FuncOp function, llvm::ArrayRef<mlir::tensor::ExpandShapeOp> reshapes);

} // namespace tilewright

#endif
