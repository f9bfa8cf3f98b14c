// Splits the kernel module into parts that code is generated for in parallel.
#ifndef TILEWRIGHT_CODEGEN_CPU_SPLITKERNELS_H
#define TILEWRIGHT_CODEGEN_CPU_SPLITKERNELS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace tilewright {

/// Returns modules that define all functions of `kernels` that others may call, each once and in the same order. A module
/// has what its functions call: one that others may call is in the same module, and internal ones are copied to each.
llvm::SmallVector<mlir::OwningOpRef<mlir::ModuleOp>> splitKernels(mlir::ModuleOp kernels);

} // namespace tilewright

#endif
