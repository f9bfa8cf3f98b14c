// Rewrites a kernel in the NVVM dialect to a module for the host. Ops of the device become calls of the runtime. Calls
// in front of every memory access and in every basic block report to the runtime. Shared variables move to an arena of
// the block.
#ifndef TILEWRIGHT_SIMULATOR_REWRITE_H
#define TILEWRIGHT_SIMULATOR_REWRITE_H

#include "tools/simulator/DeviceProgram.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace tilewright::simulator {

/// The name of the function that the host calls, with an array of pointers to the kernel's arguments.
constexpr const char *entryName = "tilewright_simulator_entry";

/// Returns the module for the host. Emits errors and returns null if the module has no such kernel, or has ops that are
/// not simulated.
mlir::OwningOpRef<mlir::ModuleOp> rewriteKernel(mlir::ModuleOp module, llvm::StringRef kernel, DeviceProgram &program);

} // namespace tilewright::simulator

#endif
