// Shared state of the steps that decide about grid barriers: CutAtGrid, JoinAtGrid, ResidentAtGrid and StreamK. The
// steps run one after another, and each one changes the decisions that the previous ones have left.
#ifndef TILEWRIGHT_PLAN_GRID_GRIDCONTEXT_H
#define TILEWRIGHT_PLAN_GRID_GRIDCONTEXT_H

#include "passes/plan/grid/WritePlan.h"
#include "passes/plan/scopes/PlanGroup.h"

namespace tilewright {

/// The state of one run of joinAtGrid. Steps read `decisions` through it and change the same object.
struct GridContext {
  const GroupProblem &groups;
  const TensorGraph &graph;
  const Target &target;
  const Decisions &decisions;
  bool allowed; ///< true if grid barriers are allowed

  /// Returns a fusion group by its index in the decisions. Kernels list these indices.
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
