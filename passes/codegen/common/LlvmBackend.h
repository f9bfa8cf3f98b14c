// LLVM as a code generator in process: what object files and PTX have in common.
#ifndef TILEWRIGHT_CODEGEN_COMMON_LLVMBACKEND_H
#define TILEWRIGHT_CODEGEN_COMMON_LLVMBACKEND_H

#include "passes/target/Target.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"

namespace tilewright {

/// The code generator for a target; null with `error` set if this LLVM has none.
std::unique_ptr<llvm::TargetMachine> makeMachine(const Target &target, std::string &error);

/// The functions of `kernels` in LLVM IR, laid out for the machine; null if some op has no translation.
std::unique_ptr<llvm::Module> translateKernels(mlir::Operation *kernels, llvm::LLVMContext &context,
                                               llvm::TargetMachine &machine);

/// The O2 pipeline as `tuning` says, with no library functions to call.
void optimise(llvm::Module &module, llvm::TargetMachine &machine, llvm::PipelineTuningOptions tuning);

/// Code of one kind; false if the machine cannot emit it.
bool emitCode(llvm::Module &module, llvm::TargetMachine &machine, llvm::CodeGenFileType kind,
              llvm::SmallVectorImpl<char> &bytes);

/// What launches kernels has to know of them, as JSON: names, sizes of their bindings, and the numbers that they have.
std::string describeKernels(llvm::ArrayRef<mlir::LLVM::LLVMFuncOp> kernels);

/// Writes a file under a temporary name first; the error says what went wrong.
llvm::Error writeFile(llvm::StringRef path, llvm::StringRef bytes);

} // namespace tilewright

#endif
