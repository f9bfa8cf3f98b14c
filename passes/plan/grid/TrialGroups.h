// Replaces fusion groups in the planner's decisions temporarily, to find out whether the replacement pays. Bindings and
// stages are computed from the decisions, so a trial has to change them.
#ifndef TILEWRIGHT_PLAN_GRID_TRIALGROUPS_H
#define TILEWRIGHT_PLAN_GRID_TRIALGROUPS_H

#include "passes/plan/grid/GridContext.h"

namespace tilewright {

/// Restores all replaced groups on destruction, unless keep() was called.
class TrialGroups {
public:
  explicit TrialGroups(Decisions &decisions) : decisions(decisions), before(decisions.parts.size()) {}
  ~TrialGroups();
  TrialGroups(const TrialGroups &) = delete;
  TrialGroups &operator=(const TrialGroups &) = delete;

  /// Replaces a group and assigns the new group's expressions to it. An index past the end adds a group.
  void place(unsigned index, PlannedGroup part);
  /// Removes a group whose expressions another group has taken.
  void remove(unsigned index) { replaced.push_back({index, std::exchange(decisions.parts[index], std::nullopt)}); }
  void keep() { isKept = true; }

private:
  struct Replaced {
    unsigned index;
    std::optional<PlannedGroup> part;
  };
  struct Moved {
    unsigned expr;
    int64_t part;
  };

  Decisions &decisions;
  size_t before; ///< number of groups before the trial
  std::vector<Replaced> replaced;
  std::vector<Moved> moved;
  bool isKept = false;
};

} // namespace tilewright

#endif
