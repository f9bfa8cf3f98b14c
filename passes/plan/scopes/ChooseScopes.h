// The scope of every edge inside a fusion group, and the group with everything that follows from its scopes.
#ifndef TILEWRIGHT_PLAN_SCOPES_CHOOSESCOPES_H
#define TILEWRIGHT_PLAN_SCOPES_CHOOSESCOPES_H

#include "passes/plan/scopes/PlanGroup.h"

namespace tilewright {

/// Chooses a scope for every edge between the expressions, which are in program order. With `threadOnly`, every
/// elementwise value is recomputed wherever it is read, which keeps shifted and transposed reads local to the tile.
llvm::DenseMap<unsigned, EdgeChoice> chooseScopes(const TensorGraph &graph, llvm::ArrayRef<unsigned> exprs,
                                                  bool threadOnly, const Target &target);

/// Plans the expressions, which are in program order, as one group with the better of both scope choices. planGroup
/// (PlanGroup.h) does so once for all equal groups.
OrDeclined<PlannedGroup> planGroupAnew(const GroupProblem &problem, llvm::ArrayRef<unsigned> exprs,
                                       RowPlacement rows = RowPlacement::whole);

/// Plans the expressions as one group with the given scopes for all edges between them.
OrDeclined<PlannedGroup> planGroupWith(const GroupProblem &problem, llvm::ArrayRef<unsigned> exprs,
                                       llvm::DenseMap<unsigned, EdgeChoice> edges,
                                       RowPlacement rows = RowPlacement::whole);

} // namespace tilewright

#endif
