// What decisions about barriers of the grid are made from: CutAtGrid, JoinAtGrid, ResidentAtGrid and StreamK. They
// change what the planner has decided, one after another; each sees what those before it have left.
#ifndef TILEWRIGHT_PLAN_GRID_GRIDCONTEXT_H
#define TILEWRIGHT_PLAN_GRID_GRIDCONTEXT_H

#include "passes/plan/grid/WritePlan.h"

namespace tilewright {

class ResizedGroups;

/// Of one run of joinAtGrid. Decisions are made from it, and carried out on the `Decisions` that it shows.
struct GridContext {
  const TensorGraph &graph;
  const Target &target;
  const Decisions &decisions;
  bool allowed;           ///< barriers of the grid
  ResizedGroups &resized; ///< remembered from one decision to the next

  /// Parts by their index among those of the decisions, which is what kernels name.
  const PlannedGroup &part(unsigned index) const { return *decisions.parts[index]; }

  bool contracts(unsigned index) const {
    return llvm::any_of(part(index).choice.exprs,
                        [&](unsigned expr) { return graph.exprs()[expr].kind == ExprKind::contraction; });
  }
  bool anyContracts(llvm::ArrayRef<unsigned> kernel) const {
    return llvm::any_of(kernel, [&](unsigned index) { return contracts(index); });
  }
};

} // namespace tilewright

#endif
