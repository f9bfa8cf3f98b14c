// Other parts in the planner's decisions for as long as it takes to see whether they pay: bindings and stages are those
// of the decisions.
#ifndef TILEWRIGHT_PLAN_GRID_TRIALPARTS_H
#define TILEWRIGHT_PLAN_GRID_TRIALPARTS_H

#include "passes/plan/grid/ResizedParts.h"

namespace tilewright {

/// Takes all of them back when its life ends, unless they are kept.
class TrialParts {
public:
  TrialParts(const GridContext &context, Decisions &decisions)
      : resized(context.resized), decisions(decisions), before(decisions.parts.size()) {}
  ~TrialParts();
  TrialParts(const TrialParts &) = delete;
  TrialParts &operator=(const TrialParts &) = delete;

  /// With the expressions of the part as its own. An index past the last is a new part.
  void place(unsigned index, PlannedPart part);
  void keep() { isKept = true; }

private:
  struct Replaced {
    unsigned index;
    std::optional<PlannedPart> part;
  };
  struct Moved {
    unsigned expr;
    int64_t part;
  };

  ResizedParts &resized;
  Decisions &decisions;
  size_t before; ///< so many parts
  std::vector<Replaced> replaced;
  std::vector<Moved> moved;
  bool isKept = false;
};

} // namespace tilewright

#endif
