// Collects errors that the assembler reports for inline assembly, with the name of the micro kernel that contains it.
// Without a diagnostic handler, LLVM ends the process at such an error.
#ifndef TILEWRIGHT_CODEGEN_CPU_ASSEMBLYERRORS_H
#define TILEWRIGHT_CODEGEN_CPU_ASSEMBLYERRORS_H

#include "mlir/IR/Operation.h"
#include "llvm/IR/Module.h"
#include <string>
#include <vector>

namespace tilewright {

/// Handles diagnostics during its lifetime. The module's context must outlive it.
class AssemblyErrors {
public:
  /// `module` is the translation of `kernels`.
  AssemblyErrors(mlir::Operation *kernels, llvm::Module &module);
  ~AssemblyErrors();
  AssemblyErrors(const AssemblyErrors &) = delete;
  AssemblyErrors &operator=(const AssemblyErrors &) = delete;

  /// Returns the first error so far, or an empty string.
  const std::string &first() const { return message; }

private:
  std::string prefix(uint64_t cookie) const;
  static void listen(const llvm::DiagnosticInfo *info, void *self);

  llvm::LLVMContext &context;
  std::vector<std::string> kernelOf; ///< micro kernel of each inline assembly, numbered from one; empty: none
  std::string message;
};

} // namespace tilewright

#endif
