// Where kernels get a barrier of the grid inside a part. While parts grew, what stays outside was charged a launch;
// where a barrier takes less time than the few blocks that compute several contractions, or whole rows behind one, the
// part is cut there. Which cuts there are is for BarrierCuts to say.
#ifndef TILEWRIGHT_PLAN_GRID_CUTATGRID_H
#define TILEWRIGHT_PLAN_GRID_CUTATGRID_H

#include "passes/plan/grid/GridContext.h"

namespace tilewright {

/// Makes the cut with which the kernel with this index is predicted to take least time, if that is clearly less than it
/// takes now; false if there is none.
bool cutOnePart(const GridContext &context, size_t kernel, Decisions &decisions);

} // namespace tilewright

#endif
