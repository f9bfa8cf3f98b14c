// Prefetches operands of contractions (Souffle 6.5): while the last steps of a contraction are multiplied, the first
// steps of the next contraction in its block are in flight, for operands that do not depend on results of the kernel.
// The plan decides it (`prefetch` of #tile.gemm, on the contraction whose operands are prefetched).
#ifndef TILEWRIGHT_PROGRAM_GPU_PREFETCH_H
#define TILEWRIGHT_PROGRAM_GPU_PREFETCH_H

#include "dialects/tile/TileDialect.h"
#include "passes/target/Target.h"

namespace tilewright {
struct ContractionPlan;

struct Prefetch {
  bool lhs = false, rhs = false;
  bool any() const { return lhs || rhs; }
};

/// Returns the operands that are prefetched.
Prefetch prefetchOf(tile::ComputeOp contraction);

/// Returns the contraction during which the prefetches of `contraction` start, or null.
tile::ComputeOp contractionBefore(tile::ComputeOp contraction);
/// Returns true if that contraction belongs to the previous iteration.
bool isPrefetchedInBlockBefore(tile::ComputeOp contraction);
/// Returns the later contraction whose prefetches start while `contraction` is computed, or null.
tile::ComputeOp contractionPrefetchedDuring(tile::ComputeOp contraction);

/// Returns the part's first contraction if its prefetches start before the barrier in front of the part's phase; else
/// null.
tile::ComputeOp contractionPrefetchedBefore(tile::ParallelOp part);

/// Returns how many first steps of these operands are prefetched: as many as the contraction
/// before has stages for, or its own number of stages if they start before a barrier.
int64_t prefetchedSteps(tile::ComputeOp contraction, const ContractionPlan &plan, int64_t threads,
                        const Target &target);

/// Returns an empty string, or why no other contraction can copy the first steps of these operands. Both contractions
/// need a single loop of steps, and nothing in the kernel may write the operands.
std::string whyNoPrefetch(tile::ComputeOp compute, int64_t threads, const Target &target);

} // namespace tilewright

#endif
