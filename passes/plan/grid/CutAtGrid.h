// Puts a grid barrier inside a fusion group. The fusion policy compared larger groups with separate launches. Where a
// barrier costs less than running several contractions, or the ops behind whole rows, in too few blocks, this step cuts
// the group. BarrierCuts lists the possible cuts.
#ifndef TILEWRIGHT_PLAN_GRID_CUTATGRID_H
#define TILEWRIGHT_PLAN_GRID_CUTATGRID_H

#include "passes/plan/grid/GridContext.h"

namespace tilewright {

/// Applies the cut that is predicted to make the kernel with this index fastest, if it is clearly faster than now.
/// Returns false if there is none.
bool cutOnePart(const GridContext &context, size_t kernel, Decisions &decisions);

} // namespace tilewright

#endif
