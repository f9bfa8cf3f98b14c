// Words the reasons that `explain` prints for edges between groups that might share a kernel: why there is a grid
// barrier or a separate launch.
#ifndef TILEWRIGHT_PLAN_GRID_GRIDREASONS_H
#define TILEWRIGHT_PLAN_GRID_GRIDREASONS_H

#include "passes/plan/grid/GridContext.h"

namespace tilewright {

/// Two kernels that might be joined.
struct KernelPair {
  llvm::SmallVector<unsigned> producers, readers; ///< groups of each kernel; readers read results of producers
  double seconds = 0;                             ///< total seconds of the two kernels, one after the other
  bool repeats = false;                           ///< true if the second kernel has the same code as the first

  llvm::SmallVector<unsigned> parts() const;
};

/// Returns the reason that a joined kernel would have too many bindings.
Declined tooManyBindings(int64_t bindings, const Target &target);
/// Returns the reason that a joined kernel is not predicted to be faster. `why` is what planKernel said.
Declined notQuicker(const GridContext &context, const KernelPair &pair, const Declined &why);

void sayApart(const GridContext &context, const KernelPair &pair, const Declined &why, Decisions &decisions);

/// Records that the two kernels become one that is predicted to take `seconds`.
void sayJoined(const GridContext &context, const KernelPair &pair, double seconds, Decisions &decisions);

/// Records that a group was cut into pieces, the last one behind the barrier. The kernel is predicted to take
/// `seconds`; it took `whole` before.
void sayCut(llvm::ArrayRef<unsigned> pieces, double seconds, double whole, Decisions &decisions);

/// Records why blocks do not share the rows of a contraction's result with the group that reads it.
void sayRowsWhole(std::pair<unsigned, unsigned> edge, const Declined &why, Decisions &decisions);

} // namespace tilewright

#endif
