// Blocking of K: how much of K a contraction takes before it moves on to the next rows. A micro kernel's label in a
// plan has it as its third size, "fma-6x4x128". Without a third size, all of K is taken at once.
#ifndef TILEWRIGHT_TARGET_KBLOCKING_H
#define TILEWRIGHT_TARGET_KBLOCKING_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace tilewright {

/// Most bytes of a K block that is copied to the stack before many rows use it, because its steps are not contiguous in
/// memory.
inline constexpr int64_t kCopiedBlockBytes = 64 * 1024;

/// Returns the label with a block of `k` along K; 0: all of K.
inline std::string withKBlocking(std::string label, int64_t k) {
  return k > 0 ? label + "x" + std::to_string(k) : label;
}

/// Returns the K block that a label names; 0: all of K.
inline int64_t kBlocking(llvm::StringRef label) {
  int64_t k = 0;
  llvm::SmallVector<llvm::StringRef, 3> sizes;
  label.rsplit('-').second.split(sizes, 'x');
  return sizes.size() == 3 && !sizes[2].getAsInteger(10, k) && k > 0 ? k : 0;
}

} // namespace tilewright

#endif
