// The software barrier of all blocks of a kernel: IREE's CUDA driver has no cooperative launch. It is safe where all
// blocks are resident at once, which launch bounds and the size of the grid see to (ConvertToGpu.cpp).
#ifndef TILEWRIGHT_CODEGEN_GPU_NEST_GRIDBARRIER_H
#define TILEWRIGHT_CODEGEN_GPU_NEST_GRIDBARRIER_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace tilewright {

/// What simulated devices know the barrier by.
inline constexpr llvm::StringLiteral kGridBarrier = "tile_grid_barrier";

/// Calls the barrier of the `blocks` blocks of a kernel; it and the kernel's counter are put into the module where they
/// are not there yet.
void callGridBarrier(mlir::OpBuilder &builder, mlir::Location loc, mlir::ModuleOp module, llvm::StringRef kernel,
                     int64_t blocks);

} // namespace tilewright

#endif
