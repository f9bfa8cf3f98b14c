// A candidate kernel of several fusion groups: the blocks that they share, and whether the kernel is worth its
// barriers. Planning it changes nothing; `carryOut` makes it the planner's decision.
#ifndef TILEWRIGHT_PLAN_GRID_PLANNEDKERNEL_H
#define TILEWRIGHT_PLAN_GRID_PLANNEDKERNEL_H

#include "passes/plan/grid/GridStages.h"

namespace tilewright {

/// Groups as stages of one kernel: their versions for the kernel's block size and their stages, in the same order.
struct StagedKernel {
  llvm::SmallVector<unsigned> parts;
  std::vector<PlannedGroup> planned;
  std::vector<GridStage> stages;
  GridKernel grid; ///< phases, with the blocks of each stage

  double seconds() const { return grid.seconds; }
};

/// A kernel as it can be carried out: its groups in the order of its phases, with their blocks.
struct PlannedKernel {
  llvm::SmallVector<unsigned> parts;
  std::vector<PlannedGroup> groups;
  double seconds = 0;
  std::vector<ResidentTile> residentInputs = {}; ///< with numbers of groups in the decisions
};

/// Plans one kernel of these groups if it is predicted to take at most `bound` seconds. It uses the groups' present
/// blocks, or blocks of another size if the present ones are impossible or clearly slower. If it declines because the
/// present blocks cannot share a kernel, it says why; otherwise the reason is empty.
OrDeclined<PlannedKernel> planKernel(const GridContext &context, llvm::ArrayRef<unsigned> parts, double bound);

/// Returns the kernel with the blocks that each stage has in it.
PlannedKernel finish(const GridContext &context, const StagedKernel &kernel,
                     std::vector<ResidentTile> residentInputs = {});

/// Makes the planned kernel the one with this index.
void carryOut(const PlannedKernel &kernel, size_t index, Decisions &decisions);

} // namespace tilewright

#endif
