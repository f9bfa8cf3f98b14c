// What parts, and the dispatches IREE would make of the same expressions, move and compute.
#ifndef TILEWRIGHT_PLAN_WORK_H
#define TILEWRIGHT_PLAN_WORK_H

#include "passes/cost/TrafficCost.h"
#include "passes/plan/IndexSpace.h"

namespace tilewright {

PartWork workOf(const TensorGraph &graph, const IndexSpace &space);

/// The dispatches of IREE alone for these expressions: an elementwise op joins the first reader of its result, a
/// reduction takes the elementwise ops that only it reads and is followed by those that read it; reshapes are free.
std::vector<PartWork> dispatchesOfIree(const TensorGraph &graph, llvm::ArrayRef<unsigned> exprs, const Target &target);

} // namespace tilewright

#endif
