// Whether this process may use AMX's tile registers, asked where a kernel begins. Nothing but the instructions of the
// entry is there to ask with: no libc, and no memory that would outlive the call.
#ifndef TILEWRIGHT_CODEGEN_CPU_TILEGATE_H
#define TILEWRIGHT_CODEGEN_CPU_TILEGATE_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace tilewright {

/// Whether a function configures tile registers.
bool usesTileRegisters(mlir::Operation *function);

/// An i1 at the builder's insertion point. To be asked on processors that have them: on others it is an illegal
/// instruction. The function that it calls is made beside `entry`, for the processors that `entry` is for.
mlir::Value askForTileRegisters(mlir::OpBuilder &builder, mlir::LLVM::LLVMFuncOp entry);

} // namespace tilewright

#endif
