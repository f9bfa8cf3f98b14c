// Sums of exponentials relative to a maximum, in two phases: the dim along which they are summed (the keys of an
// attention) is cut into parts, each with a maximum and sums of its own, and those are combined relative to the maximum
// of all, each part's sums multiplied by exp(its maximum - that of all) (flash decoding). With few rows, parts are what
// fills a GPU. What the exponentials are computed from, down to a contraction, is cut with them, so that a part is one
// kernel. Read off the bodies (RunningMaximum.h), whatever they are part of.
#ifndef TILEWRIGHT_TRANSFORMS_SPLITKEYS_H
#define TILEWRIGHT_TRANSFORMS_SPLITKEYS_H

#include "passes/analysis/TensorGraph.h"
#include "passes/target/Target.h"

#include "mlir/IR/Builders.h"

namespace tilewright {

inline constexpr llvm::StringLiteral kPartsOfRowsForm = "sums relative to maxima of parts";

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

/// Cuts the group into parts. The ops that it stood for are left without uses.
void splitKeys(const TensorGraph &graph, const KeyGroup &group, int64_t parts, llvm::StringRef form);

/// How many parts, and the predictions that decided it.
struct KeySplit {
  int64_t parts = 1;
  double oneSeconds = 0, twoSeconds = 0;
  std::string reason; ///< for one part

  std::string form() const;
  void print(llvm::raw_ostream &os) const;
};

KeySplit decideKeySplit(const TensorGraph &graph, const KeyGroup &group, const Target &target, bool gridSync);

} // namespace tilewright

#endif
