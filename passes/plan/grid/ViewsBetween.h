// Finds reshapes between two kernels. While there are two kernels, IREE evaluates these reshapes at their border. If
// the kernels are joined, a reshape that only one group reads becomes part of that group. Everything here is a pure
// function.
#ifndef TILEWRIGHT_PLAN_GRID_VIEWSBETWEEN_H
#define TILEWRIGHT_PLAN_GRID_VIEWSBETWEEN_H

#include "passes/plan/grid/GridContext.h"

namespace tilewright {

/// Returns the reshapes of results of groups `producers` that only group `reader` reads.
llvm::SmallVector<unsigned> viewsBetween(const GridContext &context, llvm::ArrayRef<unsigned> producers,
                                         unsigned reader);

} // namespace tilewright

#endif
