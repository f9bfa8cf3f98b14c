// Adds up the accumulators of several K slices, which belong to different threads or warps, in shared memory after the
// last step. The order is fixed, so that every run gives the same result.
#ifndef TILEWRIGHT_CODEGEN_GPU_GEMM_SLICEDACCUMULATORS_H
#define TILEWRIGHT_CODEGEN_GPU_GEMM_SLICEDACCUMULATORS_H

#include "passes/codegen/gpu/gemm/ContractionFrame.h"
#include "passes/layout/GemmTiling.h"

namespace tilewright {

/// Adds two scalars or vectors of floats or integers.
mlir::Value plus(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value a, mlir::Value b);

/// Returns the complete accumulators, for the threads that store them: the first `accumulatorThreads`. All threads must
/// have finished the last step.
llvm::SmallVector<mlir::Value> addUp(ContractionFrame &frame, const GemmTiling &tiling, mlir::ValueRange accumulators);

} // namespace tilewright

#endif
