// Reshapes between kernels. Left to IREE they are the border of both kernels, as long as they are two; a part that
// alone reads them has them inside in the kernel that holds both. Pure.
#ifndef TILEWRIGHT_PLAN_GRID_VIEWSBETWEEN_H
#define TILEWRIGHT_PLAN_GRID_VIEWSBETWEEN_H

#include "passes/plan/grid/GridContext.h"

namespace tilewright {

/// Those that the part `reader` alone reads, of what the parts `producers` make.
llvm::SmallVector<unsigned> viewsBetween(const GridContext &context, llvm::ArrayRef<unsigned> producers,
                                         unsigned reader);

} // namespace tilewright

#endif
