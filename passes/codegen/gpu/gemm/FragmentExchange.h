// Exchanges accumulators between threads for wider accesses. Tensor cores leave pairs of neighbouring accumulators in
// each thread, and the pairs of 16-bit elements of a row are spread over four threads: half a sector. If a nest stores
// them so, or reads such a tensor and leaves nothing in a buffer, pairs of threads first exchange pairs of two
// neighbouring blocks. Each thread then has four neighbours, and four threads touch a whole sector of the row (half a
// sector of bytes). Lines of buffers that the nest also accesses are laid out for pairs, so that fours take two passes
// over the banks, which costs less than twice the sectors.
#ifndef TILEWRIGHT_CODEGEN_GPU_GEMM_FRAGMENTEXCHANGE_H
#define TILEWRIGHT_CODEGEN_GPU_GEMM_FRAGMENTEXCHANGE_H

#include "passes/codegen/gpu/gemm/ContractionBlock.h"
#include "passes/program/RegisterHandover.h"

namespace tilewright {

/// Returns true if wider accesses pay for the nest `reader`, or, if it is null, for the stores of the contraction
/// itself.
bool gainsByLongerRuns(const ContractionPlan &plan, tile::ComputeOp contraction, const AccumulatorLayout &layout,
                       const EpilogueNest *reader);

AccumulatorLayout withLongerRuns(ContractionFrame &frame, const AccumulatorLayout &layout);
/// Returns the accumulators of a thread in the order of `withLongerRuns`. All threads of the warp must execute it.
llvm::SmallVector<mlir::Value> exchangePairs(ContractionFrame &frame, const AccumulatorLayout &layout,
                                             mlir::ValueRange accumulators);

} // namespace tilewright

#endif
