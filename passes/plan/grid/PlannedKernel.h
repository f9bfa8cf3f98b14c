// A candidate kernel of several fusion groups: the blocks that they share, and whether the kernel is worth its
// barriers. Planning it changes nothing; `carryOut` makes it the planner's decision.
#ifndef TILEWRIGHT_PLAN_GRID_PLANNEDKERNEL_H
#define TILEWRIGHT_PLAN_GRID_PLANNEDKERNEL_H

#include "passes/plan/grid/GridStages.h"

namespace tilewright {

/// Fraction of the present time that a kernel in other blocks may take at most.
inline constexpr double kWorthOtherBlocks = 0.97;

/// Groups, their replanned versions and their stages, in the same order. Stages refer to spaces of groups (see
/// stagesOf), so the kernel must be carried out before any group changes, or be planned again.
struct PlannedKernel {
  llvm::SmallVector<unsigned> parts;
  std::vector<PlannedGroup> planned; ///< groups replanned for the kernel's block size
  std::vector<GridStage> stages;
  GridKernel grid; ///< phases, with the blocks of each stage
  std::vector<ResidentInput> residentInputs = {};

  double seconds() const { return grid.seconds; }
};

/// Plans one kernel of these groups if it is predicted to take at most `bound` seconds. It uses the groups' present
/// blocks, or blocks of another size if the present ones are impossible or clearly slower. Otherwise it returns
/// nothing; then `cut` has the reason if the present blocks cannot share a kernel.
std::optional<PlannedKernel> planKernel(const GridContext &context, llvm::ArrayRef<unsigned> parts, double bound,
                                        std::string *cut = nullptr);

/// Gives a group the blocks that its stage has in the kernel.
void giveBlocks(const GridContext &context, const PlannedKernel &kernel, unsigned stage, PlannedGroup &part);

/// Makes the planned kernel the one with this index, with its groups in the order of its phases.
void carryOut(const GridContext &context, const PlannedKernel &kernel, size_t index, Decisions &decisions);

} // namespace tilewright

#endif
