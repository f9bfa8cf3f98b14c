// The delta evaluator of searches (FusionStitching 5.4): predictions for fusion groups, by their set of expressions. A
// set that was asked for before is found in a fraction of a microsecond; a group that equals one of another layer takes
// as long as its signature; any other group is planned.
#ifndef TILEWRIGHT_PLAN_SEARCH_GROUPCOSTS_H
#define TILEWRIGHT_PLAN_SEARCH_GROUPCOSTS_H

#include "passes/plan/scopes/PlanGroup.h"
#include "passes/plan/search/ExprSet.h"
#include "llvm/ADT/DenseSet.h"
#include <functional>
#include <limits>
#include <unordered_map>

namespace tilewright {

/// A set of expressions as a fusion group, with its prediction.
struct CostedGroup {
  ExprSet set;
  llvm::SmallVector<unsigned> exprs; ///< in program order
  double seconds = 0;                ///< infinity if no such group is possible
  double bytes = 0;
  bool isView = false;         ///< true if it has reshapes only, which cost nothing
  bool contracts = false;      ///< true if it has a contraction
  bool isComputeBound = false; ///< true if its arithmetic takes longer than its traffic
  bool inRegisters = true;     ///< true if all its edges are at scope thread
  int64_t tiles = 1;           ///< independent tiles, which workgroups may compute at the same time
  Declined why = {};           ///< the reason why no such group is possible

  bool isPossible() const { return seconds < std::numeric_limits<double>::infinity(); }
};

class GroupCosts {
public:
  /// `keepsApart` says which expressions share no kernel with others.
  GroupCosts(const GroupProblem &problem, std::function<bool(unsigned)> keepsApart)
      : problem(problem), keepsApart(std::move(keepsApart)) {}

  /// Returns the group of these expressions. It does not look at ops outside the set that stand between them.
  const CostedGroup &of(const ExprSet &set);

  /// Returns the number of expressions in all groups that were asked for, equal groups counted once, and those of groups
  /// with many contractions several times. Planning takes time in proportion to it. It does not depend on what the memo
  /// knew before, so searches that end at a number are deterministic.
  size_t numPlanned() const { return planned; }

private:
  struct Hash {
    size_t operator()(const ExprSet &set) const { return set.hash(); }
  };

  void predict(CostedGroup &group);

  const GroupProblem &problem;
  std::function<bool(unsigned)> keepsApart;
  std::unordered_map<ExprSet, CostedGroup, Hash> known;
  llvm::DenseSet<int64_t> signatures;
  size_t planned = 0;
};

} // namespace tilewright

#endif
