// Reductions of rows that several blocks share (Souffle, figure 1c): the reduced dim is in the grid, so a block has a
// part of each row. Blocks exchange the results of their parts at grid barriers, and the rest of a tile stays on chip.
// Everything here is a pure function.
#ifndef TILEWRIGHT_PLAN_SPACE_SHAREDROWS_H
#define TILEWRIGHT_PLAN_SPACE_SHAREDROWS_H

#include "passes/plan/ir/Plan.h"
#include "passes/plan/space/IterationSpace.h"

namespace tilewright {

/// Returns true if the root reduces a dim that the grid cuts into tiles.
bool reducesSharedRows(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &root);

/// Returns the number of grid barriers at which blocks exchange results; 0 if no rows are shared. Reductions that do
/// not depend on each other share a barrier, and so do a sum and the sum of squares of differences from its mean.
int64_t rowExchanges(const TensorGraph &graph, const IterationSpace &space);

/// Returns true if the root is a sum of squares of differences from a mean that blocks exchange together with the sum
/// for that mean. This takes other algebra (two-moment variance).
bool sharesBarrierOfMean(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &root);

/// Returns why blocks cannot share rows as the group of a plan says, or an empty string. `space` has the group's roots
/// with their nests.
std::string whyNotShared(const TensorGraph &graph, const GroupChoice &choice, const IterationSpace &space,
                         const GroupPlan &group, NumericsMode numerics);

/// Returns the number of blocks that share a row in the group of a plan; 1 if none do.
int64_t blocksPerRow(const TensorGraph &graph, const GroupPlan &group);

} // namespace tilewright

#endif
