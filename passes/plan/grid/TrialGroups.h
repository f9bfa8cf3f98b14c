// Other parts in the planner's decisions for as long as it takes to see whether they pay: bindings and stages are those
// of the decisions.
#ifndef TILEWRIGHT_PLAN_GRID_TRIALGROUPS_H
#define TILEWRIGHT_PLAN_GRID_TRIALGROUPS_H

#include "passes/plan/grid/ResizedGroups.h"

namespace tilewright {

/// Takes all of them back when its life ends, unless they are kept.
class TrialGroups {
public:
  TrialGroups(const GridContext &context, Decisions &decisions)
      : resized(context.resized), decisions(decisions), before(decisions.parts.size()) {}
  ~TrialGroups();
  TrialGroups(const TrialGroups &) = delete;
  TrialGroups &operator=(const TrialGroups &) = delete;

  /// With the expressions of the part as its own. An index past the last is a new part.
  void place(unsigned index, PlannedGroup part);
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

  ResizedGroups &resized;
  Decisions &decisions;
  size_t before; ///< so many parts
  std::vector<Replaced> replaced;
  std::vector<Moved> moved;
  bool isKept = false;
};

} // namespace tilewright

#endif
