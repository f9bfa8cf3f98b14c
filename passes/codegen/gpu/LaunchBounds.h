// Checks what a kernel's launch needs of the device while the kernel still has its name. IREE and the driver would
// refuse it only when it is loaded or launched.
#ifndef TILEWRIGHT_CODEGEN_GPU_LAUNCHBOUNDS_H
#define TILEWRIGHT_CODEGEN_GPU_LAUNCHBOUNDS_H

#include "dialects/tile/TileDialect.h"
#include "passes/target/Target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tilewright {

/// Reports an error for blocks, clusters and prefetches that the target does not support.
mlir::LogicalResult checkLaunch(tile::ProgramOp program, const Target &target);

/// Reports an error for a kernel whose blocks need more shared memory than the target has.
mlir::LogicalResult checkBlockBytes(mlir::func::FuncOp function, const Target &target);

/// Proves that all blocks of a kernel with a grid barrier are resident at once on the smallest device of the target,
/// and adds launch bounds that make ptxas limit the registers accordingly.
mlir::LogicalResult proveCoResidency(tile::ProgramOp program, mlir::func::FuncOp function, const Target &target);

/// Bounds the registers of a kernel so that as many blocks are resident on an SM as the plan states. Reports an error if
/// they do not fit. Without a plan, they are those that the proof above needs or, of kernels with contractions, as many
/// as the kernel has and as fit.
mlir::LogicalResult boundRegisters(tile::ProgramOp program, mlir::func::FuncOp function, const Target &target);

} // namespace tilewright

#endif
