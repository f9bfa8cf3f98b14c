// Weights of a repeated kernel that stay in shared memory over all steps of its loop (Souffle's temporal reuse).
// tile-keep-weights decides which, once everything else of a block has its place, and marks their contractions
// (`tile.resident_weight`). Where they lie follows from the marks.
#ifndef TILEWRIGHT_PROGRAM_GPU_RESIDENTWEIGHTS_H
#define TILEWRIGHT_PROGRAM_GPU_RESIDENTWEIGHTS_H

#include "passes/program/gpu/ContractionPlan.h"

namespace tilewright {

/// A contraction whose rhs a block copies in the first step only.
struct ResidentWeight {
  tile::ComputeOp contraction;
  int64_t offset; ///< of its slots, one per step along K, in the shared memory of the block
  int64_t bytes;
};

/// Returns the weights that blocks of a repeated program can keep while all blocks remain resident at once: an rhs that
/// does not change in the loop, of which each block multiplies one tile. Earlier contractions come first.
llvm::SmallVector<ResidentWeight> possibleWeights(tile::ProgramOp program, const Target &target);

/// Returns the weights whose contractions are marked. They lie behind everything else in shared memory; the first ones
/// take the slots through which they would pass otherwise, if those come last.
llvm::SmallVector<ResidentWeight> residentWeights(tile::ProgramOp program, const Target &target);

/// Returns why a block cannot keep the rhs of a contraction over all steps of a loop, or an empty string.
std::string whyNotKept(tile::ComputeOp contraction, const Target &target);

/// Returns the shared memory of a block in bytes, if the weights come behind `bytes` bytes of buffers that have no
/// offsets yet. Those may be padded.
int64_t sharedBytesBehind(llvm::ArrayRef<ResidentWeight> weights, int64_t bytes);

/// Returns the shared memory of a block in bytes, weights included.
int64_t sharedBytesWithWeights(tile::ProgramOp program, const Target &target);

} // namespace tilewright

#endif
