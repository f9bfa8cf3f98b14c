// Tensor cores leave a thread pairs of neighbouring sums, and a row's pairs of 16 bits lie with four threads: half a
// sector. Where a nest stores them so, or reads such a tensor and leaves nothing in a buffer, two threads first
// exchange pairs of two neighbouring blocks. Each then has four neighbours, and the four threads touch a whole sector
// of the row (of bytes half of one). Buffers that the nest touches as well have lines for pairs, and give fours in two
// passes over the banks: cheaper than writing twice the sectors.
#ifndef TILEWRIGHT_CODEGEN_GPU_GEMM_FRAGMENTEXCHANGE_H
#define TILEWRIGHT_CODEGEN_GPU_GEMM_FRAGMENTEXCHANGE_H

#include "passes/program/RegisterHandover.h"
#include "passes/codegen/gpu/gemm/ContractionBlock.h"

namespace tilewright {

/// Whether what takes the sums gains by longer runs: a nest that reads them, or null: the contraction itself.
bool gainsByLongerRuns(const ContractionPlan &plan, tile::ComputeOp contraction, const AccumulatorLayout &layout,
                       const EpilogueNest *reader);

AccumulatorLayout withLongerRuns(ContractionFrame &frame, const AccumulatorLayout &layout);
/// The sums of a thread in the order of `withLongerRuns`. All threads of the warp come here.
llvm::SmallVector<mlir::Value> exchangePairs(ContractionFrame &frame, const AccumulatorLayout &layout, mlir::ValueRange sums);

} // namespace tilewright

#endif
