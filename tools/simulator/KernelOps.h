// Classifies the ops of a kernel for the simulated device: the class of instructions as which an op counts, and its
// access to memory.
#ifndef TILEWRIGHT_SIMULATOR_KERNELOPS_H
#define TILEWRIGHT_SIMULATOR_KERNELOPS_H

#include "tools/simulator/DeviceProgram.h"

#include "mlir/IR/Operation.h"

namespace tilewright::simulator {

/// Address spaces, with the numbers of NVVM.
inline constexpr unsigned genericSpace = 0, globalSpace = 1, sharedSpace = 3, clusterSpace = 7;

/// Returns the class as which an op counts, or nothing if it is no instruction, such as a constant.
std::optional<InstructionClass> classify(mlir::Operation *op);

/// Returns true for a product of a warpgroup (`wgmma`). It is an op or, if lhs is in registers, inline assembly.
bool isWarpgroupProduct(mlir::Operation *op);

/// Returns the number of instructions of an op. An op on vectors counts as one instruction per element.
uint32_t lanes(mlir::Operation *op);

/// An access to memory.
struct MemoryAccess {
  mlir::Value pointer;
  mlir::Type type;
  uint64_t alignment; ///< bytes; 0: alignment of the type
  AccessKind kind;
};

std::optional<MemoryAccess> memoryAccess(mlir::Operation *op);

/// Returns true for an op that the simulator does not support, because it may access memory in an unknown way.
bool isUnknown(mlir::Operation *op);

/// Returns the pointer from which an address is computed, as far as the code shows it.
mlir::Value addressBase(mlir::Value pointer);

} // namespace tilewright::simulator

#endif
