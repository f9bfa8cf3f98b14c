// The question of a kernel that a loop repeats whether this is the first step. A kernel asks by a call, which is
// replaced by the answer when the loop becomes part of the kernel.
#ifndef TILEWRIGHT_CODEGEN_GPU_NEST_FIRSTSTEP_H
#define TILEWRIGHT_CODEGEN_GPU_NEST_FIRSTSTEP_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace tilewright {

/// Asks in a kernel of the module. Adds the declaration if it is missing.
mlir::Value isFirstStep(mlir::OpBuilder &builder, mlir::Location loc, mlir::ModuleOp module);

/// Replaces all questions of a kernel by the answer.
void answerFirstStep(mlir::LLVM::LLVMFuncOp kernel, mlir::Value isFirst);

/// Answers that every launch of the kernel is a first step.
void answerFirstStep(mlir::LLVM::LLVMFuncOp kernel);

/// Erases the declaration that questions call. Returns false if there is none, because no kernel of the module asks.
bool eraseFirstStep(mlir::Operation *module);

} // namespace tilewright

#endif
