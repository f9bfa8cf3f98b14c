// A kernel's reduced dim that tiles walk block by block (ReducedWalk), asked of the graph and of a subprogram.
#ifndef TILEWRIGHT_PLAN_SPACE_WALKEDDIM_H
#define TILEWRIGHT_PLAN_SPACE_WALKEDDIM_H

#include "passes/graph/ReducedWalk.h"
#include "passes/plan/space/IterationSpace.h"

namespace tilewright {

/// How the roots of a part, which have their dims, take part in walking `dim`, or why they cannot.
Walk walkAlong(const TensorGraph &graph, const GroupChoice &part, llvm::ArrayRef<GroupRoot> roots, int64_t dim);

/// The same of a subprogram whose expressions are roots.
Walk walkAlong(tile::SubprogramOp subprogram, int64_t dim);

/// The dim that tiles of a space walk: the one outside of the grid whose tile is not its extent; -1: none.
int64_t walkedDim(llvm::ArrayRef<int64_t> extents, llvm::ArrayRef<int64_t> tiles, llvm::ArrayRef<int64_t> grid);

/// Over the dims of the space, where the points of a dim end that count for what walks it; null where all count.
mlir::AffineExpr countedAlong(const TensorGraph &graph, const GroupChoice &part, llvm::ArrayRef<GroupRoot> roots,
                              int64_t dim);

/// `map`, over the domain of an expression, over the dims of a space instead.
mlir::AffineExpr inSpace(mlir::AffineMap map, llvm::ArrayRef<int64_t> places);

/// The dim whose walk makes the buffers of a part with contractions small, or -1.
int64_t walkableDim(const TensorGraph &graph, const GroupChoice &part, const IterationSpace &space);

} // namespace tilewright

#endif
