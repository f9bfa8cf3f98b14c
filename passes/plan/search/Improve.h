// A local search over groupings. It merges, cuts and moves parts of groups for as long as the predicted time falls, and
// looks a few merges ahead where no single one pays.
#ifndef TILEWRIGHT_PLAN_SEARCH_IMPROVE_H
#define TILEWRIGHT_PLAN_SEARCH_IMPROVE_H

#include "passes/plan/search/Grouping.h"

namespace tilewright {

/// The price of a kernel in a search, and the end of the search.
struct SearchLimits {
  size_t mostPlanned = 0;      ///< it ends once so many expressions were planned (GroupCosts::numPlanned)
  double secondsPerKernel = 0; ///< added to each kernel's prediction; negative if barriers may replace launches
};

/// Returns a grouping that is predicted to take at most as long as the given one. The result depends on its arguments
/// alone, and not on the clock.
Grouping improve(Grouping grouping, const SearchLimits &limits);

} // namespace tilewright

#endif
