// A kernel of several parts as it might be: which blocks they have together, and whether it is worth its barriers.
// Finding it changes nothing; `carryOut` makes it what the planner has decided.
#ifndef TILEWRIGHT_PLAN_GRID_PLANNEDKERNEL_H
#define TILEWRIGHT_PLAN_GRID_PLANNEDKERNEL_H

#include "passes/plan/grid/GridStages.h"

namespace tilewright {

/// Of the time in blocks as they are, for other blocks.
inline constexpr double kWorthOtherBlocks = 0.97;

/// Parts, what they are planned as, and their stages stand in the same order. Stages refer to spaces of parts (see
/// stagesOf), so it is carried out before any part changes, or found again.
struct PlannedKernel {
  llvm::SmallVector<unsigned> parts;
  std::vector<PlannedGroup> planned; ///< for blocks of as many threads
  std::vector<GridStage> stages;
  GridKernel grid; ///< its phases, and the blocks that stages have there
  std::vector<ResidentInput> kept = {};

  double seconds() const { return grid.seconds; }
};

/// One kernel of parts, where it is predicted to take no longer than `bound`: in the blocks that they have or, where
/// that cannot be or others are clearly quicker, in blocks of another size. Else nothing, and in `cut` why the blocks
/// that they have do not share a kernel, if they do not.
std::optional<PlannedKernel> planKernel(const GridContext &context, llvm::ArrayRef<unsigned> parts, double bound,
                                        std::string *cut = nullptr);

/// Gives the part the blocks that the stage has in the kernel.
void giveBlocks(const GridContext &context, const PlannedKernel &kernel, unsigned stage, PlannedGroup &part);

/// Makes it the kernel with this index, its parts in the order of its phases.
void carryOut(const GridContext &context, const PlannedKernel &kernel, size_t index, Decisions &decisions);

} // namespace tilewright

#endif
