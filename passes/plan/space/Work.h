// Counts what fusion groups move and compute, and models the dispatches that IREE alone would form from the same
// expressions.
#ifndef TILEWRIGHT_PLAN_SPACE_WORK_H
#define TILEWRIGHT_PLAN_SPACE_WORK_H

#include "passes/cost/TrafficCost.h"
#include "passes/plan/space/IterationSpace.h"

namespace tilewright {

GroupWork workOf(const TensorGraph &graph, const IterationSpace &space, const Target &target);

/// Returns the expressions of each dispatch that IREE alone would form. An elementwise op joins the first reader of its
/// result. A reduction joins the elementwise ops that only it reads, and its readers join it. Reshapes are free.
std::vector<llvm::SmallVector<unsigned>> dispatchesOfIree(const TensorGraph &graph, llvm::ArrayRef<unsigned> exprs);

} // namespace tilewright

#endif
