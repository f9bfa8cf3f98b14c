// Sums of which several threads or warps have added up some of the terms: they meet in shared memory after the last
// step. The order is fixed, so every run gives the same result.
#ifndef TILEWRIGHT_CODEGEN_GPU_GEMM_SLICEDACCUMULATORS_H
#define TILEWRIGHT_CODEGEN_GPU_GEMM_SLICEDACCUMULATORS_H

#include "passes/codegen/gpu/gemm/ContractionFrame.h"
#include "passes/cost/GemmTiling.h"

namespace tilewright {

/// The whole sums, for the threads that store them: the first `accumulatorThreads`. All threads have come past the last step.
mlir::Value plus(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value a, mlir::Value b);
llvm::SmallVector<mlir::Value> addUp(ContractionFrame &frame, const GemmTiling &tiling, mlir::ValueRange sums);

} // namespace tilewright

#endif
