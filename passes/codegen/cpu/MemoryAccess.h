// Describes the memory accesses that the code generator emits, for the passes that instrument them.
#ifndef TILEWRIGHT_CODEGEN_CPU_MEMORYACCESS_H
#define TILEWRIGHT_CODEGEN_CPU_MEMORYACCESS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <optional>

namespace tilewright {

/// A load or store of one element, of a contiguous vector, or of scattered elements (`offsets`).
struct MemoryAccess {
  mlir::Operation *op;
  mlir::Value memory;
  mlir::Value mask;   ///< null if every lane is accessed
  mlir::Value offsets; ///< offset of each lane from the last index; null for contiguous lanes
  mlir::OperandRange indices;
  int64_t lanes;
  bool isStore;

  int64_t elementBytes() const;
};

std::optional<MemoryAccess> memoryAccessOf(mlir::Operation *op);

/// Adds an argument of type `record` behind the bindings of a kernel and calls `instrument` for every access of the
/// kernel with that argument. The builder's insertion point is in front of the access. Leaves functions that are not
/// kernels alone.
llvm::LogicalResult
instrumentAccesses(mlir::func::FuncOp kernel, mlir::MemRefType record,
                   llvm::function_ref<void(mlir::OpBuilder &, const MemoryAccess &, mlir::BlockArgument)> instrument);

} // namespace tilewright

#endif
