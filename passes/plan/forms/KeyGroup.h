// What is cut together where sums of exponentials relative to a maximum are split along their dim, the keys of an
// attention (SplitKeys.h): the maximum, the sums, and what the exponentials are computed from, down to a contraction,
// so that a part is one kernel. Read off the bodies (OnlineSoftmax.h), whatever they are part of.
#ifndef TILEWRIGHT_PLAN_FORMS_KEYGROUP_H
#define TILEWRIGHT_PLAN_FORMS_KEYGROUP_H

#include "passes/graph/TensorGraph.h"

namespace tilewright {

/// An op of the group that is cut.
struct KeyMember {
  unsigned expr;
  int64_t dim;             ///< the one that is cut
  mlir::AffineMap maximum; ///< of a sum: index of its maximum, over the indices of its result
  bool sums = false;
  llvm::SmallVector<TensorAccess> reads; ///< behind views, by input of the expression
};

/// What is cut together.
struct KeyGroup {
  std::string reason; ///< why there is none
  unsigned maximum = 0;
  int64_t keys = 0;
  std::vector<KeyMember> members; ///< in program order
};

/// The group of a maximum along one dim.
KeyGroup findKeyGroup(const TensorGraph &graph, unsigned maximum);

/// The same for groups that are predicted alike, as in repeated layers.
std::string kindOfGroup(const TensorGraph &graph, const KeyGroup &group);

} // namespace tilewright

#endif
