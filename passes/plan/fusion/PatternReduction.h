// PatternReduction, the divide and conquer of FusionStitching 5.2, for any kind of patterns.
#ifndef TILEWRIGHT_PLAN_FUSION_PATTERNREDUCTION_H
#define TILEWRIGHT_PLAN_FUSION_PATTERNREDUCTION_H

#include "passes/plan/search/ExprSet.h"
#include <functional>
#include <optional>
#include <vector>

namespace tilewright {

/// A set of vertices and what fusing them saves, in seconds.
struct FusionPattern {
  ExprSet set;
  double saved = 0;
};

/// Number of patterns that are kept for each vertex, and of plans (FusionStitching 5.2 and 5.3).
inline constexpr size_t kPatternsKept = 3;

/// Returns a pattern of these members with its saving, or nothing if it is illegal.
using MakePattern = std::function<std::optional<FusionPattern>(const ExprSet &)>;

/// Returns the best patterns of a vertex, at most kPatternsKept, the best first. `own` is the vertex alone, and
/// `consumers` has the patterns of each of its consumers. Two consumers are combined in all ways; more are halved, and the
/// best patterns of both halves are combined in the same way.
std::vector<FusionPattern> reducePatterns(const ExprSet &own, llvm::ArrayRef<llvm::ArrayRef<FusionPattern>> consumers,
                                    const MakePattern &make);

} // namespace tilewright

#endif
