// Chooses the micro kernel that computes a nest on a CPU. The choice depends on the layout of K in rhs, the types and
// the target. Pure.
#ifndef TILEWRIGHT_CODEGEN_CPU_CONTRACTIONKERNELS_H
#define TILEWRIGHT_CODEGEN_CPU_CONTRACTIONKERNELS_H

#include "passes/graph/MatchContraction.h"
#include "passes/target/Target.h"

namespace tilewright {

/// The layout of K in rhs.
struct KLayout {
  RhsLayout rhs{1};
  int64_t dim = -1; ///< dim of the nest along which the K of a step follow each other
};

KLayout kLayout(tile::ComputeOp compute, Contraction contraction);

/// Returns the micro kernel that the nest names if it can compute the nest. Otherwise, returns the fastest one that can
/// and does not use tile registers, or nothing.
std::optional<MicroKernel> kernelFor(tile::ComputeOp compute, const Contraction &contraction, const KLayout &layout,
                                     const Target &target, bool allowTiles);

} // namespace tilewright

#endif
