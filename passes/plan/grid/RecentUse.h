// Which of the tensors that a kernel hands on from phase to phase stay in a memory that is too small for all of them
// (Souffle 6.5): the one that was not used for the longest time is spilled. This is a pure function.
#ifndef TILEWRIGHT_PLAN_GRID_RECENTUSE_H
#define TILEWRIGHT_PLAN_GRID_RECENTUSE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace tilewright {

/// A tensor that one phase writes and later phases read. Phases are numbers, those of the reads in order.
struct HandedOn {
  int64_t bytes;
  unsigned written;
  llvm::SmallVector<unsigned, 2> read;
};

/// Returns, for each tensor, how many of its reads find it in a memory of `capacity` bytes; the reads after those do
/// not. A tensor takes its bytes from the phase that writes it to the last such read.
llvm::SmallVector<unsigned> keepByRecentUse(llvm::ArrayRef<HandedOn> tensors, int64_t capacity);

} // namespace tilewright

#endif
