// Planned parts as stages of one kernel, which is what the evaluator (GridPartition.h) knows: what a block of each
// does, whose results it reads, and how long so many blocks take. Pure.
#ifndef TILEWRIGHT_PLAN_GRID_GRIDSTAGES_H
#define TILEWRIGHT_PLAN_GRID_GRIDSTAGES_H

#include "passes/cost/GridPartition.h"
#include "passes/plan/grid/GridContext.h"

namespace tilewright {

/// The part `own` of a kernel of `parts`, with the tiles of `space` in blocks of so many threads; nothing if those
/// cannot compute the tile of a contraction. A contraction's stage refers to the space, and asks it when it is asked.
std::optional<GridStage> stageOf(const GridContext &context, unsigned own, llvm::ArrayRef<unsigned> parts,
                                 const IterationSpace &space, int64_t threads);

/// A kernel of these parts as they stand, all in blocks of the size of the largest; nothing if those cannot compute one
/// of them. The stages refer to the spaces of the parts: they are good until a part is replaced, or moves.
std::optional<std::vector<GridStage>> stagesOf(const GridContext &context, llvm::ArrayRef<unsigned> parts);

/// Of that kernel, or of several where its blocks cannot all be resident; 0: no blocks compute all parts.
double predictedSeconds(const GridContext &context, llvm::ArrayRef<unsigned> parts);

/// One kernel of all stages, whatever two would take; nothing if their blocks cannot all be resident.
std::optional<GridKernel> joinStages(const GridContext &context, llvm::ArrayRef<GridStage> stages);

} // namespace tilewright

#endif
