// The canonical signature of a kernel of several fusion groups: everything that planning it reads, as GroupSignature.h
// does for one group. Kernels of equal layers have equal signatures, so they are cut, joined and resized once.
#ifndef TILEWRIGHT_PLAN_GRID_KERNELSIGNATURE_H
#define TILEWRIGHT_PLAN_GRID_KERNELSIGNATURE_H

#include "passes/plan/grid/GridContext.h"

namespace tilewright {

/// The groups of a kernel, and the frame of each, in the order in which the kernel's signature mentions them.
struct KernelFrame {
  llvm::SmallVector<unsigned> parts;
  std::vector<GroupFrame> groups;

  unsigned placeOf(unsigned part) const { return llvm::find(parts, part) - parts.begin(); }
};

/// Returns the signature of a kernel of these groups as they are now, and sets its frame.
MemoKey signatureOf(const GridContext &context, llvm::ArrayRef<unsigned> parts, KernelFrame &frame);

/// Returns a group of a kernel, made from the group at this place of the frame `from`, as the corresponding group of the
/// frame `to`.
PlannedGroup rebase(const GridContext &context, const PlannedGroup &group, unsigned place, const KernelFrame &from,
                    const KernelFrame &to);

} // namespace tilewright

#endif
