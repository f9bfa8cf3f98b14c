// From a kernel at the NVVM dialect to a module for the host: the device's ops become calls of the runtime, every
// memory access and every basic block reports itself first, shared variables lie in the block's arena.
#ifndef TILEWRIGHT_SIMULATOR_REWRITE_H
#define TILEWRIGHT_SIMULATOR_REWRITE_H

#include "tools/simulator/DeviceProgram.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace tilewright::simulator {

/// What the host calls, with an array of pointers to the kernel's arguments.
constexpr const char *entryName = "tilewright_simulator_entry";

/// Null if the module has no such kernel or does what is not simulated; errors are emitted at the ops at fault.
mlir::OwningOpRef<mlir::ModuleOp> rewriteKernel(mlir::ModuleOp module, llvm::StringRef kernel, DeviceProgram &program);

} // namespace tilewright::simulator

#endif
