// Places in memory for buffers that are live at different times (Welder 3.1 does the same for tiles). Pure: the plan
// asks how much memory they take, and tile-allocate-buffers places them.
#ifndef TILEWRIGHT_SUPPORT_BESTFIT_H
#define TILEWRIGHT_SUPPORT_BESTFIT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace tilewright {

/// Of each place, in bytes: a cache line, and more than any vector.
inline constexpr int64_t kBufferAlignment = 64;

struct LiveBuffer {
  int64_t bytes;
  unsigned first, last; ///< inclusive
};

struct BestFit {
  llvm::SmallVector<int64_t> offsets; ///< in the order of the ranges
  int64_t end = 0;                    ///< behind all of them
};

/// Largest first: on handfuls of buffers that is as good as optimal and easy to predict.
BestFit placeByBestFit(llvm::ArrayRef<LiveBuffer> ranges);

} // namespace tilewright

#endif
