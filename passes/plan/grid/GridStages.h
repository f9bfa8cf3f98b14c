// Describes planned groups as stages of one kernel for the evaluator (GridPartition.h): the work of one block, the
// stages whose results it reads, and the time of a given number of blocks. Everything here is a pure function.
#ifndef TILEWRIGHT_PLAN_GRID_GRIDSTAGES_H
#define TILEWRIGHT_PLAN_GRID_GRIDSTAGES_H

#include "passes/cost/GridPartition.h"
#include "passes/plan/grid/GridContext.h"

namespace tilewright {

/// Returns the stage of group `own` in a kernel of `parts`, with the tiles of `space` in blocks of `threads` threads.
/// Returns nothing if such blocks cannot compute the tile of a contraction.
std::optional<GridStage> stageOf(const GridContext &context, unsigned own, llvm::ArrayRef<unsigned> parts,
                                 const IterationSpace &space, int64_t threads);

/// Returns the stages of a kernel of these groups, all in blocks as large as the largest one. Returns nothing if such
/// blocks cannot compute one of the groups.
std::optional<std::vector<GridStage>> stagesOf(const GridContext &context, llvm::ArrayRef<unsigned> parts);

/// Returns the predicted seconds of that kernel, or of several kernels if its blocks cannot all be resident; 0 if no
/// blocks compute all groups.
double predictedSeconds(const GridContext &context, llvm::ArrayRef<unsigned> parts);

/// Returns one kernel of all stages, even if two kernels would be faster. Returns nothing if its blocks cannot all be
/// resident.
std::optional<GridKernel> joinStages(const GridContext &context, llvm::ArrayRef<GridStage> stages);

} // namespace tilewright

#endif
