// Places the scratch of nests in shared memory: each is live for a range of nests, and the lowest offset that is free
// in that range is taken. The planner predicts with it, and the passes on programs allocate by it. Pure.
#ifndef TILEWRIGHT_LAYOUT_SCRATCHPLACES_H
#define TILEWRIGHT_LAYOUT_SCRATCHPLACES_H

#include "llvm/ADT/ArrayRef.h"

namespace tilewright {

constexpr int64_t kScratchAlignment = 128; ///< bytes, at least

/// The scratch of one nest, live from one nest to another.
struct ScratchUse {
  int64_t bytes;
  unsigned first, last;
  int64_t offset = 0;
};

/// Returns the lowest offset that does not overlap scratch that is live at the same time.
int64_t lowestOffset(const ScratchUse &own, llvm::ArrayRef<ScratchUse> placed, int64_t alignment);

} // namespace tilewright

#endif
