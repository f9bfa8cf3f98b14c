// Emits nests behind a contraction that read its accumulators from registers more than once, or reduce their rows
// (softmax, norms). Each thread iterates over the rows of its accumulators, and threads that share a row combine their
// results by shuffles and through shared memory.
#ifndef TILEWRIGHT_CODEGEN_GPU_GEMM_ROWEPILOGUE_H
#define TILEWRIGHT_CODEGEN_GPU_GEMM_ROWEPILOGUE_H

#include "passes/codegen/gpu/gemm/ContractionBlock.h"
#include "passes/program/RegisterHandover.h"

namespace tilewright {

/// Emits the nest. `thread` is the index of the thread in its block, an i32. Values that the nest stores to a held tile
/// are held from then on.
void emitEpilogueNest(mlir::OpBuilder &builder, HeldAccumulators &held, const EpilogueNest &reader,
                      const mlir::IRMapping &values, mlir::Value thread, int64_t threads);

} // namespace tilewright

#endif
