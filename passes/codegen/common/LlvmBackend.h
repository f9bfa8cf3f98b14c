// Runs LLVM in process as a code generator. Object files and PTX share these steps.
#ifndef TILEWRIGHT_CODEGEN_COMMON_LLVMBACKEND_H
#define TILEWRIGHT_CODEGEN_COMMON_LLVMBACKEND_H

#include "passes/target/Target.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"

namespace tilewright {

/// Returns the code generator for a target. Returns null and sets `error` if this LLVM has none.
std::unique_ptr<llvm::TargetMachine> makeMachine(const Target &target, std::string &error);

/// Translates the functions of `kernels` to LLVM IR with the machine's data layout. Returns null if an op has no
/// translation.
std::unique_ptr<llvm::Module> translateKernels(mlir::Operation *kernels, llvm::LLVMContext &context,
                                               llvm::TargetMachine &machine);

/// Runs LLVM's O2 pipeline with the given tuning. The optimiser may not introduce calls of library functions.
void optimise(llvm::Module &module, llvm::TargetMachine &machine, llvm::PipelineTuningOptions tuning);

/// Emits code as assembly or as an object file. Returns false if the machine cannot emit that kind.
bool emitCode(llvm::Module &module, llvm::TargetMachine &machine, llvm::CodeGenFileType kind,
              llvm::SmallVectorImpl<char> &bytes);

/// Returns the properties of kernels that a launcher needs, as JSON: names, workgroups, threads, outputs, and the sizes
/// of workgroup memory and bindings.
std::string describeKernels(llvm::ArrayRef<mlir::LLVM::LLVMFuncOp> kernels);

/// Writes a file under a temporary name and then renames it, so that no reader sees a partial file.
llvm::Error writeFile(llvm::StringRef path, llvm::StringRef bytes);

} // namespace tilewright

#endif
