// Finds the kernel, copies it and everything it refers to, and rewrites the copy.
#include "tools/simulator/Rewrite.h"
#include "tools/simulator/KernelRewriter.h"

#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::simulator;

static bool isKernel(LLVM::LLVMFuncOp function) {
  return function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()) || function->hasAttr("gpu.kernel");
}

static LLVM::LLVMFuncOp findKernel(ModuleOp module, StringRef name) {
  SmallVector<LLVM::LLVMFuncOp> kernels;
  std::string names;
  module.walk([&](LLVM::LLVMFuncOp function) {
    if (!isKernel(function))
      return;
    names += (names.empty() ? "" : ", ") + function.getName().str();
    if (name.empty() || function.getName() == name)
      kernels.push_back(function);
  });
  if (kernels.size() == 1)
    return kernels.front();
  if (names.empty())
    module.emitError("the module has no kernel, which is an llvm.func with the attribute nvvm.kernel");
  else if (name.empty())
    module.emitError("the module has several kernels, so one must be named: ") << names;
  else
    module.emitError("the module has no kernel '") << name << "'; it has " << names;
  return nullptr;
}

/// Clones the kernel and all symbols that it refers to into a module of their own.
static LogicalResult cloneReachable(LLVM::LLVMFuncOp kernel, ModuleOp into) {
  SymbolTable symbols(kernel->getParentOp());
  SmallVector<Operation *> work = {kernel};
  llvm::SmallPtrSet<Operation *, 8> seen = {kernel};
  OpBuilder builder = OpBuilder::atBlockEnd(into.getBody());
  while (!work.empty()) {
    Operation *symbol = work.pop_back_val();
    builder.clone(*symbol);
    bool failed = false;
    symbol->walk([&](Operation *op) {
      if (!isa<LLVM::LLVMDialect, NVVM::NVVMDialect>(op->getDialect())) {
        op->emitOpError("is not in the llvm or nvvm dialect, which simulated kernels require");
        failed = true;
        return;
      }
      op->getAttrDictionary().walk([&](FlatSymbolRefAttr reference) {
        Operation *target = symbols.lookup(reference.getAttr());
        if (target && reference.getValue() != gridBarrierName && seen.insert(target).second)
          work.push_back(target);
      });
    });
    if (failed)
      return failure();
  }
  return success();
}

OwningOpRef<ModuleOp> tilewright::simulator::rewriteKernel(ModuleOp module, StringRef kernel, DeviceProgram &program) {
  LLVM::LLVMFuncOp found = findKernel(module, kernel);
  if (!found)
    return nullptr;
  OwningOpRef<ModuleOp> result = ModuleOp::create(module.getLoc());
  if (failed(cloneReachable(found, *result)) || failed(KernelRewriter(*result, found.getName(), program).run()))
    return nullptr;
  return result;
}
