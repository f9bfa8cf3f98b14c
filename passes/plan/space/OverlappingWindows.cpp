#include "passes/plan/space/OverlappingWindows.h"

using namespace mlir;
using namespace tilewright;

int64_t tilewright::windowDim(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &root) {
  const TensorExpr &expr = graph.exprs()[root.expr];
  if (expr.kind == ExprKind::contraction)
    return -1;
  auto overlaps = [&](unsigned dim) {
    return llvm::any_of(root.accesses, [&](const RootAccess &access) {
      return llvm::any_of(access.map.getResults(), [&](AffineExpr index) {
        return index.isFunctionOfDim(dim) && llvm::any_of(expr.reductions, [&](int64_t reduced) {
                 return expr.domain[reduced] > 1 && index.isFunctionOfDim(reduced);
               });
      });
    });
  };
  for (unsigned dim = expr.domain.size(); dim-- > 0;)
    if (root.dims[dim] >= 0 && root.dims[dim] != space.vector && !llvm::is_contained(expr.reductions, dim) &&
        overlaps(dim))
      return root.dims[dim];
  return -1;
}

bool tilewright::joinsWindows(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &root) {
  int64_t dim = windowDim(graph, space, root);
  return dim >= 0 && space.tiles[dim] > 1 && space.extents[dim] % space.tiles[dim] == 0;
}
