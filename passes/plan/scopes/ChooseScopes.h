// The scope of every edge inside a fusion group, and the group with everything that follows from its scopes.
#ifndef TILEWRIGHT_PLAN_SCOPES_CHOOSESCOPES_H
#define TILEWRIGHT_PLAN_SCOPES_CHOOSESCOPES_H

#include "passes/plan/space/PlannedGroup.h"

namespace tilewright {

/// Scopes for all edges between the expressions (in program order). With `threadOnly` every elementwise value is
/// computed again wherever it is read, which keeps shifted and transposed reads local to the tile.
llvm::DenseMap<unsigned, EdgeChoice> chooseScopes(const TensorGraph &graph, llvm::ArrayRef<unsigned> exprs,
                                                  bool threadOnly);

/// The better of the scope choices for a set of expressions (in program order), or why there is none.
std::optional<PlannedGroup> planGroup(const TensorGraph &graph, llvm::ArrayRef<unsigned> exprs, const Target &target,
                                    std::string *reason = nullptr);

/// The same with given scopes for all edges between them.
std::optional<PlannedGroup> planGroup(const TensorGraph &graph, llvm::ArrayRef<unsigned> exprs, const Target &target,
                                    llvm::DenseMap<unsigned, EdgeChoice> edges, std::string *reason = nullptr);

} // namespace tilewright

#endif
