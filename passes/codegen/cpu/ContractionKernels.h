// Which micro kernel computes a nest on a CPU: how the terms of a step lie in the operand along the lanes decides with
// the types and the target. Pure.
#ifndef TILEWRIGHT_CODEGEN_CPU_CONTRACTIONKERNELS_H
#define TILEWRIGHT_CODEGEN_CPU_CONTRACTIONKERNELS_H

#include "passes/graph/MatchContraction.h"
#include "passes/target/Target.h"

namespace tilewright {

/// How the terms of a step lie in the lane operand, and along which dim.
struct KLayout {
  LaneLayout lanes{1};
  int64_t dim = -1; ///< of the nest
};

KLayout kLayout(tile::ComputeOp compute, Contraction contraction);

/// The micro kernel that the nest names, or the quickest that is not of tile registers, that can compute it.
std::optional<MicroKernel> kernelFor(tile::ComputeOp compute, const Contraction &contraction, const KLayout &layout,
                                     const Target &target, bool allowTiles);

} // namespace tilewright

#endif
