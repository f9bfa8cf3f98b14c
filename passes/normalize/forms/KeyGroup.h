// Finds the ops that must be split together when sums of exponentials relative to a maximum are split along their dim,
// the keys of an attention (SplitKeys.h): the maximum, the sums, and the ops that compute the exponents, back to a
// contraction, so that each part is one kernel. The analysis reads bodies only (OnlineSoftmax.h), whatever they are
// part of.
#ifndef TILEWRIGHT_NORMALIZE_FORMS_KEYGROUP_H
#define TILEWRIGHT_NORMALIZE_FORMS_KEYGROUP_H

#include "passes/graph/TensorGraph.h"

namespace tilewright {

/// An op of a group that is split along its keys.
struct KeyMember {
  unsigned expr;
  int64_t dim;                           ///< the dim that is split
  mlir::AffineMap maximum;               ///< for a sum: index of its maximum, over the indices of its result
  bool sums = false;                     ///< true if the op sums values that are relative to the maximum
  llvm::SmallVector<TensorAccess> reads; ///< by input of the expression: the access to the tensor behind views
};

/// The ops that are split together.
struct KeyGroup {
  std::string reason;             ///< why the group cannot be split; empty if it can
  unsigned maximum = 0;           ///< expression of the maximum
  int64_t keys = 0;               ///< extent of the dim that is split
  std::vector<KeyMember> members; ///< in program order
};

/// Finds the group of a maximum along one dim.
KeyGroup findKeyGroup(const TensorGraph &graph, unsigned maximum);

/// Returns a key of a group that can be split, equal for groups with equal predictions, such as those of repeated layers.
std::string kindOfGroup(const TensorGraph &graph, const KeyGroup &group);

} // namespace tilewright

#endif
