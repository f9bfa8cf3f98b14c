// Accesses to memory as the code generator emits them, for what instruments them.
#ifndef TILEWRIGHT_CODEGEN_CPU_MEMORYACCESS_H
#define TILEWRIGHT_CODEGEN_CPU_MEMORYACCESS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <optional>

namespace tilewright {

/// A load or store of one element, of neighbours in a vector's lanes, or of elements anywhere (`places`).
struct MemoryAccess {
  mlir::Operation *op;
  mlir::Value memory;
  mlir::Value mask;   ///< null when every lane is accessed
  mlir::Value places; ///< per lane, what is added to the last index; null for neighbours
  mlir::OperandRange indices;
  int64_t lanes;
  bool isStore;

  int64_t elementBytes() const;
};

std::optional<MemoryAccess> memoryAccessOf(mlir::Operation *op);

/// Gives a kernel one more argument, of type `record` and behind its bindings, and calls `instrument` with every access
/// there was and that argument, the builder before the access. Functions that are no kernels stay as they are.
llvm::LogicalResult
instrumentAccesses(mlir::func::FuncOp kernel, mlir::MemRefType record,
                   llvm::function_ref<void(mlir::OpBuilder &, const MemoryAccess &, mlir::BlockArgument)> instrument);

} // namespace tilewright

#endif
