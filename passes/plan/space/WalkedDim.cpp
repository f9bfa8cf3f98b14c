#include "passes/plan/space/WalkedDim.h"

#include "dialects/tile/TileAttributeNames.h"
#include "passes/graph/Form.h"
#include "passes/plan/space/PlanNumerics.h"

using namespace mlir;
using namespace tilewright;

static WalkedRoot walkedRoot(const TensorGraph &graph, const GroupChoice &group, ArrayRef<GroupRoot> roots,
                             const GroupRoot &root) {
  const TensorExpr &expr = graph.exprs()[root.expr];
  WalkedRoot walked{&expr, root.dims, {}, false};
  walked.leaves = llvm::any_of(expr.op->getResults(), [&](Value result) { return leavesGroup(graph, group, result); });
  for (const RootAccess &access : root.accesses)
    if (access.producer >= 0) {
      auto producer = llvm::find_if(roots, [&](const GroupRoot &other) { return other.expr == access.producer; });
      walked.reads.push_back({static_cast<unsigned>(producer - roots.begin()),
                              graph.exprs()[access.producer].results[access.result], access.map,
                              access.guard != IntegerSet()});
    }
  return walked;
}

Walk tilewright::walkAlong(const TensorGraph &graph, const GroupChoice &group, ArrayRef<GroupRoot> roots, int64_t dim) {
  SmallVector<WalkedRoot> walked;
  for (const GroupRoot &root : roots)
    walked.push_back(walkedRoot(graph, group, roots, root));
  return decideWalk(walked, dim, [&](unsigned maximum) -> SmallVector<Relation> {
    if (!isOnlineSoftmaxOfBlocks(formOf(graph.exprs()[roots[maximum].expr])))
      return {};
    auto producerOf = [&](unsigned expr, unsigned input) -> int64_t {
      for (unsigned edge : graph.inEdges(expr))
        if (graph.edges()[edge].input == input && group.scopes.contains(edge))
          return graph.edges()[edge].producer;
      return -1;
    };
    SmallVector<Relation> all = relateTo(graph.exprs(), roots[maximum].expr, producerOf, /*throughRoundings=*/true);
    return llvm::map_to_vector(roots, [&](const GroupRoot &root) { return all[root.expr]; });
  });
}

AffineExpr tilewright::inSpace(AffineMap map, ArrayRef<int64_t> places) {
  MLIRContext *context = map.getContext();
  SmallVector<AffineExpr> renamed;
  for (int64_t place : places)
    renamed.push_back(place < 0 ? getAffineConstantExpr(0, context) : getAffineDimExpr(place, context));
  return map.getResult(0).replaceDimsAndSymbols(renamed, {});
}

AffineExpr tilewright::countedAlong(const TensorGraph &graph, const GroupChoice &group, ArrayRef<GroupRoot> roots,
                                    int64_t dim) {
  Walk walk = dim < 0 ? Walk() : walkAlong(graph, group, roots, dim);
  if (!walk.mayEnd)
    return {};
  const GroupRoot &maximum = roots[walk.maximum];
  auto end = graph.exprs()[maximum.expr].op->getAttrOfType<AffineMapAttr>(kCountedAttr);
  return end ? inSpace(end.getValue(), maximum.dims) : AffineExpr();
}

int64_t tilewright::walkableDim(const TensorGraph &graph, const GroupChoice &group, const IterationSpace &space) {
  int64_t best = -1;
  for (const GroupRoot &root : space.roots) {
    const TensorExpr &expr = graph.exprs()[root.expr];
    if (expr.kind != ExprKind::contraction)
      continue;
    for (int64_t reduced : expr.reductions) {
      int64_t dim = root.dims[reduced];
      // The operand along the dim must be in a buffer, since otherwise walking saves no memory.
      bool buffered = llvm::any_of(root.accesses, [&](const RootAccess &access) {
        return access.producer >= 0 && access.map.isFunctionOfDim(reduced);
      });
      if (dim >= 0 && buffered && (best < 0 || space.extents[dim] > space.extents[best]) &&
          walkAlong(graph, group, space.roots, dim).refused.empty())
        best = dim;
    }
  }
  return best;
}
