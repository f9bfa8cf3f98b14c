// Reasons why a block cannot compute a contraction as a plan states, which the planner gives for a plan and the passes
// on programs give for a tile program.
#ifndef TILEWRIGHT_LAYOUT_GEMMREASONS_H
#define TILEWRIGHT_LAYOUT_GEMMREASONS_H

#include "llvm/ADT/Twine.h"
#include <string>

namespace tilewright {

/// `operands` are those whose first steps the plan prefetches: "lhs", "rhs" or "both".
inline std::string whyNotCopiedAhead(llvm::StringRef operands) {
  return ("the first steps of its " + operands +
          " cannot be copied ahead: that takes a contraction before it with a single loop of steps, or a barrier of the "
          "grid, and an operand that is copied asynchronously and that nothing in the kernel writes")
      .str();
}

inline std::string whyLhsNotResident(llvm::StringRef why) {
  return ("its lhs cannot stay in shared memory: " + why).str();
}

inline std::string whyRoundedAgain(llvm::StringRef microKernel) {
  return ("'" + microKernel + "' rounds its operands in shared memory, for each step again").str();
}

} // namespace tilewright

#endif
