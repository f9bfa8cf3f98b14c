// The software barrier of all blocks of a kernel, because IREE's CUDA driver has no cooperative launch. It is safe if
// all blocks are resident at once, which launch bounds and the grid's size ensure (ConvertToGpu.cpp).
#ifndef TILEWRIGHT_CODEGEN_GPU_NEST_GRIDBARRIER_H
#define TILEWRIGHT_CODEGEN_GPU_NEST_GRIDBARRIER_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace tilewright {

/// Name by which simulated devices recognise the barrier.
inline constexpr llvm::StringLiteral kGridBarrier = "tile_grid_barrier";

/// Calls the barrier for the `blocks` blocks of a kernel. Adds the barrier and the kernel's counter to the kernel's
/// module, a builtin or GPU module, if they are missing.
void callGridBarrier(mlir::OpBuilder &builder, mlir::Location loc, mlir::Operation *module, llvm::StringRef kernel,
                     int64_t blocks);

} // namespace tilewright

#endif
