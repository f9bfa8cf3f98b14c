// What parts move and compute, and the dispatches that IREE would make of the same expressions.
#ifndef TILEWRIGHT_PLAN_SPACE_WORK_H
#define TILEWRIGHT_PLAN_SPACE_WORK_H

#include "passes/cost/TrafficCost.h"
#include "passes/plan/space/IterationSpace.h"

namespace tilewright {

GroupWork workOf(const TensorGraph &graph, const IterationSpace &space);

/// The expressions of each dispatch that IREE alone would form: an elementwise op joins the first reader of its result,
/// a reduction takes the elementwise ops that only it reads and is followed by those that read it; reshapes are free.
std::vector<llvm::SmallVector<unsigned>> dispatchesOfIree(const TensorGraph &graph, llvm::ArrayRef<unsigned> exprs);

} // namespace tilewright

#endif
