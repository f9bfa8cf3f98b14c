// Nests behind a contraction that read its sums from registers more than once, or reduce their rows (a softmax, a
// norm): each thread goes over the rows that it has sums of, and the threads that share a row combine what they
// accumulated, by shuffles and through shared memory.
#ifndef TILEWRIGHT_CODEGEN_GPU_GEMM_ROWEPILOGUE_H
#define TILEWRIGHT_CODEGEN_GPU_GEMM_ROWEPILOGUE_H

#include "passes/program/RegisterHandover.h"
#include "passes/codegen/gpu/gemm/ContractionBlock.h"

namespace tilewright {

/// `thread` is the index of the thread in its block, an i32. What the nest stores to a tile that is held is held then.
void emitEpilogueNest(mlir::OpBuilder &builder, HeldAccumulators &held, const EpilogueNest &reader, const mlir::IRMapping &values,
                   mlir::Value thread, int64_t threads);

} // namespace tilewright

#endif
