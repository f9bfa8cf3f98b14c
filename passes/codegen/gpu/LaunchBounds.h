// What a kernel's launch needs of the device, checked where the kernel has a name: IREE and the driver refuse it only
// when it is loaded or launched.
#ifndef TILEWRIGHT_CODEGEN_GPU_LAUNCHBOUNDS_H
#define TILEWRIGHT_CODEGEN_GPU_LAUNCHBOUNDS_H

#include "dialects/tile/TileDialect.h"
#include "passes/target/Target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tilewright {

/// Refuses blocks, clusters and prefetches that the target does not take.
mlir::LogicalResult checkLaunch(tile::ProgramOp program, const Target &target);

/// Refuses a kernel whose blocks need more shared memory than the target has.
mlir::LogicalResult checkBlockBytes(mlir::func::FuncOp function, const Target &target);

/// Bounds the registers of kernels with contractions. They are predicted with as many blocks on an SM as their registers
/// allow; an assembler that is not told so takes more registers, to begin early with what comes late.
void boundRegisters(tile::ProgramOp program, mlir::func::FuncOp function, const Target &target);

/// Proves that all blocks of a kernel with a barrier of the grid are resident at once on the smallest device of the
/// target, and asks for launch bounds that force the registers to allow so many on each SM.
mlir::LogicalResult proveCoResidency(tile::ProgramOp program, mlir::func::FuncOp function, const Target &target);

} // namespace tilewright

#endif
