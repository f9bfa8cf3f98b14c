// Copies that begin before the contraction that they are for (Souffle 6.5): while the last steps of a contraction are
// multiplied, the first steps of the next one in its block are on their way, of those operands that do not depend on
// what the kernel computes. The tile program says so on the contraction that gains from it.
#ifndef TILEWRIGHT_PROGRAM_GPU_PREFETCH_H
#define TILEWRIGHT_PROGRAM_GPU_PREFETCH_H

#include "dialects/tile/TileDialect.h"
#include "passes/target/Target.h"

namespace tilewright {
struct ContractionPlan;

struct Prefetch {
  bool rows = false, lanes = false;
  bool any() const { return rows || lanes; }
};

/// As the attribute says.
Prefetch prefetchOf(tile::ComputeOp contraction);
void setPrefetch(tile::ComputeOp contraction, Prefetch loads);

/// The contraction before it in its block, while which those loads begin; null: none.
tile::ComputeOp contractionBefore(tile::ComputeOp contraction);
/// Whether that one is of the iteration before.
bool isPrefetchedInBlockBefore(tile::ComputeOp contraction);
/// The contraction behind it whose loads begin while it is computed; null: none.
tile::ComputeOp contractionPrefetchedDuring(tile::ComputeOp contraction);

/// The first contraction of the part, if its loads begin before the barrier in front of the part's phase.
tile::ComputeOp contractionPrefetchedBefore(tile::ParallelOp part);

/// How many of its first steps are copied ahead, of the operands that the attribute says: as many as the contraction
/// before has stages for, or as its own if they begin before a barrier.
int64_t prefetchedSteps(tile::ComputeOp contraction, const ContractionPlan &plan, int64_t threads,
                        const Target &target);

/// The operands whose first steps can be copied during the contraction before, or before the barrier: they have one
/// loop of steps, so has the one before (or `why` not), and nothing in the kernel writes what is copied.
Prefetch possiblePrefetch(tile::ComputeOp contraction, int64_t threads, const Target &target,
                              std::string *why = nullptr);

/// Empty, or what is wrong with the attribute, for which nobody would copy what the contraction multiplies.
std::string whyNoPrefetch(tile::ComputeOp compute, int64_t threads, const Target &target);

} // namespace tilewright

#endif
