// Functions that others may call belong together if one refers to the other, perhaps through internal functions: an
// entry for outputs in place calls the kernel's own entry, for example.
#include "passes/codegen/cpu/SplitKernels.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tilewright;

/// Returns the op and all that it refers to, directly or not.
static llvm::SetVector<Operation *> reachableFrom(Operation *first, const SymbolTable &symbols) {
  llvm::SetVector<Operation *> reached;
  reached.insert(first);
  for (size_t next = 0; next < reached.size(); ++next)
    reached[next]->walk([&](Operation *op) {
      op->getAttrDictionary().walk([&](FlatSymbolRefAttr name) {
        if (Operation *referred = symbols.lookup(name.getAttr()))
          reached.insert(referred);
      });
    });
  return reached;
}

SmallVector<OwningOpRef<ModuleOp>> tilewright::splitKernels(ModuleOp kernels) {
  SymbolTable symbols(kernels);
  auto isExported = [](Operation *op) {
    auto function = dyn_cast<LLVM::LLVMFuncOp>(op);
    return function && !function.isExternal() && function.getLinkage() != LLVM::Linkage::Internal;
  };
  llvm::EquivalenceClasses<Operation *> together;
  llvm::MapVector<Operation *, llvm::SetVector<Operation *>> reached;
  for (Operation &op : *kernels.getBody()) {
    if (!isExported(&op))
      continue;
    reached[&op] = reachableFrom(&op, symbols);
    together.insert(&op);
    for (Operation *other : reached[&op])
      if (isExported(other))
        together.unionSets(&op, other);
  }
  llvm::MapVector<Operation *, llvm::SmallPtrSet<Operation *, 8>> parts; // by the leader
  for (auto &[function, needed] : reached)
    parts[together.getLeaderValue(function)].insert(needed.begin(), needed.end());
  SmallVector<OwningOpRef<ModuleOp>> modules;
  for (auto &[leader, members] : parts) {
    modules.emplace_back(cast<ModuleOp>(kernels->cloneWithoutRegions()));
    OpBuilder builder = OpBuilder::atBlockEnd(&modules.back()->getBodyRegion().emplaceBlock());
    for (Operation &op : *kernels.getBody())
      if (members.contains(&op))
        builder.clone(op);
  }
  return modules;
}
