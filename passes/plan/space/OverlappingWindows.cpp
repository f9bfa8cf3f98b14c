#include "passes/plan/space/OverlappingWindows.h"

#include "passes/support/OverlapsAlong.h"

using namespace mlir;
using namespace tilewright;

int64_t tilewright::windowDim(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &root,
                              const Target &target) {
  const TensorExpr &expr = graph.exprs()[root.expr];
  auto isUnrolled = [&](int64_t dim) { return expr.domain[dim] <= target.costs.cpu.unrolledPoints; };
  if (expr.kind == ExprKind::contraction || !llvm::all_of(expr.reductions, isUnrolled))
    return -1;
  auto overlaps = [&](unsigned dim) {
    return llvm::any_of(root.accesses, [&](const RootAccess &access) {
      return overlapsAlong(access.map, dim, expr.reductions, expr.domain);
    });
  };
  for (unsigned dim = expr.domain.size(); dim-- > 0;)
    if (root.dims[dim] >= 0 && root.dims[dim] != space.vector && !llvm::is_contained(expr.reductions, dim) &&
        overlaps(dim))
      return root.dims[dim];
  return -1;
}

bool tilewright::joinsWindows(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &root,
                             const Target &target) {
  int64_t dim = windowDim(graph, space, root, target);
  return dim >= 0 && space.tiles[dim] > 1 && space.extents[dim] % space.tiles[dim] == 0;
}
