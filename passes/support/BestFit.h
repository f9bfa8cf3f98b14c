// Offsets in memory for buffers that are live at different times (Welder 3.1 does the same for tiles). This is a pure
// function: the planner uses it to count the memory, and tile-allocate-buffers to allocate it.
#ifndef TILEWRIGHT_SUPPORT_BESTFIT_H
#define TILEWRIGHT_SUPPORT_BESTFIT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace tilewright {

/// Alignment of each buffer in bytes: a cache line, and at least the width of any vector.
inline constexpr int64_t kBufferAlignment = 64;

struct LiveBuffer {
  int64_t bytes;
  unsigned first, last; ///< live range, inclusive
};

struct BestFit {
  llvm::SmallVector<int64_t> offsets; ///< in the order of the ranges, in bytes
  int64_t end = 0;                    ///< end of the last buffer, in bytes
};

/// Places the largest buffers first. For a handful of buffers that is as good as optimal, and easy to predict.
BestFit placeByBestFit(llvm::ArrayRef<LiveBuffer> ranges);

} // namespace tilewright

#endif
