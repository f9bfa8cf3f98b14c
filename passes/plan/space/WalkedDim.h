// Finds the reduced dim of a kernel that its tiles walk block by block (ReducedWalk), for a group of the graph.
#ifndef TILEWRIGHT_PLAN_SPACE_WALKEDDIM_H
#define TILEWRIGHT_PLAN_SPACE_WALKEDDIM_H

#include "passes/graph/SubprogramWalk.h"
#include "passes/plan/space/IterationSpace.h"

namespace tilewright {

/// Decides how the roots of a group take part in walking `dim`, or why they cannot. The roots must have their dims.
Walk walkAlong(const TensorGraph &graph, const GroupChoice &group, llvm::ArrayRef<GroupRoot> roots, int64_t dim);

/// Returns the end of the points that count along `dim`, as an expression over the dims of the space; null if all
/// count.
mlir::AffineExpr countedAlong(const TensorGraph &graph, const GroupChoice &group, llvm::ArrayRef<GroupRoot> roots,
                              int64_t dim);

/// Rewrites `map` from the domain of an expression to the dims of a space.
mlir::AffineExpr inSpace(mlir::AffineMap map, llvm::ArrayRef<int64_t> places);

/// Returns the dim whose walk shrinks the buffers of a group with contractions, or -1.
int64_t walkableDim(const TensorGraph &graph, const GroupChoice &group, const IterationSpace &space);

} // namespace tilewright

#endif
