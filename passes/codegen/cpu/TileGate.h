// Emits a check whether the process may use AMX's tile registers, which a kernel runs at its start. The check can use
// only instructions of the entry point: there is no libc, and no memory that outlives the call.
#ifndef TILEWRIGHT_CODEGEN_CPU_TILEGATE_H
#define TILEWRIGHT_CODEGEN_CPU_TILEGATE_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace tilewright {

/// Returns true if the function configures tile registers.
bool usesTileRegisters(mlir::Operation *function);

/// Emits a check at the builder's insertion point and returns its result, an i1. The code must run only on processors
/// that have tile registers; on others, it is an illegal instruction. The check calls a function that is created beside
/// `entry`, for the same target.
mlir::Value askForTileRegisters(mlir::OpBuilder &builder, mlir::LLVM::LLVMFuncOp entry);

} // namespace tilewright

#endif
