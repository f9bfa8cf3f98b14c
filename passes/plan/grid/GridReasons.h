// What `explain` says of edges between parts that might share a kernel: why a barrier of the grid stands there, or a
// launch.
#ifndef TILEWRIGHT_PLAN_GRID_GRIDREASONS_H
#define TILEWRIGHT_PLAN_GRID_GRIDREASONS_H

#include "passes/plan/grid/GridContext.h"

namespace tilewright {

/// Of the time of two kernels, for one that has the same code twice, as of two layers of a model. Apart, they share it:
/// it is compiled, assembled and fetched once.
inline constexpr double kWorthTheCode = 0.95;

/// Two kernels that might be one.
struct KernelPair {
  llvm::SmallVector<unsigned> producers, readers; ///< their parts; readers read what producers make
  double seconds = 0;                             ///< of the two, one after the other
  bool repeats = false;                           ///< the second has the code of the first

  llvm::SmallVector<unsigned> parts() const;
};

/// Why the two stay apart: one kernel has so many bindings.
Declined tooManyBindings(int64_t bindings, const Target &target);
/// Or it is not predicted to take less. `cut` is what planKernel says.
Declined notQuicker(const GridContext &context, const KernelPair &pair, const std::string &cut);

void sayApart(const GridContext &context, const KernelPair &pair, const Declined &why, Decisions &decisions);

/// The two become a kernel that is predicted to take so many seconds.
void sayJoined(const GridContext &context, const KernelPair &pair, double seconds, Decisions &decisions);

/// A part of a kernel stands in pieces, the one behind the barrier last; the kernel is predicted to take so many
/// seconds, and `whole` before.
void sayCut(llvm::ArrayRef<unsigned> pieces, double seconds, double whole, Decisions &decisions);

} // namespace tilewright

#endif
