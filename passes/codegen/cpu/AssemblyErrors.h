// What the assembler says of inline assembly, and which micro kernel wrote it. LLVM ends the process at such an error
// unless somebody listens.
#ifndef TILEWRIGHT_CODEGEN_CPU_ASSEMBLYERRORS_H
#define TILEWRIGHT_CODEGEN_CPU_ASSEMBLYERRORS_H

#include "mlir/IR/Operation.h"
#include "llvm/IR/Module.h"
#include <string>
#include <vector>

namespace tilewright {

/// Listens for as long as it lives; the module's context must outlive it.
class AssemblyErrors {
public:
  /// `module` is what `kernels` were translated to.
  AssemblyErrors(mlir::Operation *kernels, llvm::Module &module);
  ~AssemblyErrors();
  AssemblyErrors(const AssemblyErrors &) = delete;
  AssemblyErrors &operator=(const AssemblyErrors &) = delete;

  /// The first error so far; empty if there is none.
  const std::string &first() const { return message; }

private:
  std::string prefix(uint64_t cookie) const;
  static void listen(const llvm::DiagnosticInfo *info, void *self);

  llvm::LLVMContext &context;
  std::vector<std::string> kernelOf; ///< of the pieces of assembly, which are numbered from one; empty: of none
  std::string message;
};

} // namespace tilewright

#endif
