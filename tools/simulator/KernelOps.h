// What an op of a kernel is to the simulated device: instructions of a class, or an access to memory.
#ifndef TILEWRIGHT_SIMULATOR_KERNELOPS_H
#define TILEWRIGHT_SIMULATOR_KERNELOPS_H

#include "tools/simulator/DeviceProgram.h"

#include "mlir/IR/Operation.h"

namespace tilewright::simulator {

/// Address spaces as NVVM numbers them.
inline constexpr unsigned genericSpace = 0, globalSpace = 1, sharedSpace = 3, clusterSpace = 7;

/// The class an op is counted in; none: it is only names and constants.
std::optional<InstructionClass> classify(mlir::Operation *op);

/// Whether four warps multiply: `wgmma`, as an op or, with the left factor in registers, in assembly.
bool isWarpgroupProduct(mlir::Operation *op);

/// In how many instructions: a vector is as many as it has elements.
uint32_t lanes(mlir::Operation *op);

/// An access to memory: where, how much, and how.
struct MemoryAccess {
  mlir::Value pointer;
  mlir::Type type;
  uint64_t alignment; ///< 0: as the type has it
  AccessKind kind;
};

std::optional<MemoryAccess> memoryAccess(mlir::Operation *op);

/// Ops that read or write memory in a way that nothing here knows of.
bool isUnknown(mlir::Operation *op);

/// What an address is computed from, as far as the code says.
mlir::Value addressBase(mlir::Value pointer);

} // namespace tilewright::simulator

#endif
