// How many terms of its sums a contraction takes before it goes on to the next rows: a micro kernel's label in a plan
// has it as a third size, "fma-6x4x128". Without one all terms are taken at once.
#ifndef TILEWRIGHT_TARGET_KBLOCKING_H
#define TILEWRIGHT_TARGET_KBLOCKING_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace tilewright {

/// Of a block whose steps lie apart, which are copied one after another before many rows pass: on the stack.
inline constexpr int64_t kCopiedBlockBytes = 64 * 1024;

/// The label with the terms of a block; 0: all.
inline std::string withKBlocking(std::string label, int64_t terms) {
  return terms > 0 ? label + "x" + std::to_string(terms) : label;
}

/// The terms that a label names; 0: all.
inline int64_t kBlocking(llvm::StringRef label) {
  int64_t terms = 0;
  llvm::SmallVector<llvm::StringRef, 3> sizes;
  label.rsplit('-').second.split(sizes, 'x');
  return sizes.size() == 3 && !sizes[2].getAsInteger(10, terms) && terms > 0 ? terms : 0;
}

} // namespace tilewright

#endif
