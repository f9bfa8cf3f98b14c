// Compiles a rewritten kernel to code for the host, in process.
#ifndef TILEWRIGHT_SIMULATOR_JIT_H
#define TILEWRIGHT_SIMULATOR_JIT_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"

#include <memory>

namespace tilewright::simulator {

class Jit {
public:
  static llvm::Expected<std::unique_ptr<Jit>> compile(mlir::ModuleOp module);
  llvm::Expected<void *> address(llvm::StringRef symbol);

private:
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

} // namespace tilewright::simulator

#endif
