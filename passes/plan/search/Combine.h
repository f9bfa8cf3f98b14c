// Combines groupings: each region of the graph takes the groups of the grouping that is best there.
#ifndef TILEWRIGHT_PLAN_SEARCH_COMBINE_H
#define TILEWRIGHT_PLAN_SEARCH_COMBINE_H

#include "passes/plan/search/Improve.h"

namespace tilewright {

/// Returns a grouping that is predicted to take at most as long as each of these, of which there is at least one. A
/// region is a smallest set of expressions that is a union of groups in two groupings; regions that would make a cycle
/// stay as they are.
Grouping combine(llvm::ArrayRef<Grouping> groupings, const SearchLimits &limits);

} // namespace tilewright

#endif
