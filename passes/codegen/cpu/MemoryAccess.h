// Accesses to memory as the code generator emits them, for what instruments them.
#ifndef TILEWRIGHT_CODEGEN_CPU_MEMORYACCESS_H
#define TILEWRIGHT_CODEGEN_CPU_MEMORYACCESS_H

#include "mlir/IR/Builders.h"
#include <optional>

namespace tilewright {

/// A load or store of one element, of neighbours in a vector's lanes, or of elements anywhere (`places`).
struct MemoryAccess {
  mlir::Value memory;
  mlir::Value mask;   ///< null when every lane is accessed
  mlir::Value places; ///< per lane, what is added to the last index; null for neighbours
  mlir::OperandRange indices;
  int64_t lanes;
  bool isStore;

  int64_t elementBytes() const;
};

std::optional<MemoryAccess> memoryAccessOf(mlir::Operation *op);

} // namespace tilewright

#endif
