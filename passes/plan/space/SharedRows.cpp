#include "passes/plan/space/SharedRows.h"

#include "passes/graph/Form.h"
#include "passes/graph/SumOfSquares.h"

using namespace mlir;
using namespace tilewright;

/// Returns the number of tiles of the grid along the dims that the op reduces. `dims` are its dims in the space.
static int64_t tilesPerRow(const TensorExpr &expr, ArrayRef<int64_t> dims, ArrayRef<int64_t> extents,
                           ArrayRef<int64_t> tiles, ArrayRef<int64_t> grid) {
  int64_t count = 1;
  for (int64_t dim : expr.reductions)
    if (int64_t place = dims[dim]; llvm::is_contained(grid, place))
      count *= llvm::divideCeil(extents[place], tiles[place]);
  return count;
}

bool tilewright::reducesSharedRows(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &root) {
  return tilesPerRow(graph.exprs()[root.expr], root.dims, space.extents, space.tiles, space.grid) > 1;
}

int64_t tilewright::blocksPerRow(const TensorGraph &graph, const GroupPlan &group) {
  int64_t most = 1;
  for (const OpPlan &op : group.ops)
    if (op.root)
      most = std::max(most, tilesPerRow(graph.exprs()[op.id], op.dims, group.extents, group.tiles, group.grid));
  return most;
}

/// Returns true if all tiles along the dims that the root reduces have the same size.
static bool hasEqualParts(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &root) {
  return llvm::all_of(graph.exprs()[root.expr].reductions, [&](int64_t dim) {
    int64_t place = root.dims[dim];
    return place < 0 || space.extents[place] % space.tiles[place] == 0;
  });
}

bool tilewright::sharesBarrierOfMean(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &root) {
  if (!reducesSharedRows(graph, space, root) || !hasEqualParts(graph, space, root))
    return false;
  int64_t total = totalOfSquares(graph, root.expr);
  auto isRoot = [&](int64_t expr) {
    return llvm::any_of(space.roots, [&](const GroupRoot &other) { return other.expr == expr; });
  };
  if (total < 0 || !isRoot(total) || space.root(total).dims != root.dims)
    return false;
  // The nest itself must square the difference, instead of reading it from a buffer.
  SquaredDifference difference = *squaredDifference(cast<linalg::GenericOp>(graph.exprs()[root.expr].op));
  return llvm::all_of(ArrayRef({difference.square, difference.subtraction}), [&](linalg::GenericOp op) {
    int64_t expr = graph.indexOf(op);
    return expr >= 0 && (!isRoot(expr) || space.root(expr).nest == root.nest);
  });
}

int64_t tilewright::rowExchanges(const TensorGraph &graph, const IterationSpace &space) {
  int64_t exchanges = 0;
  SmallVector<std::pair<unsigned, int64_t>> behind; // number of the barrier that completes each shared reduction
  for (const GroupRoot &root : space.roots) {
    if (!reducesSharedRows(graph, space, root))
      continue;
    int64_t own = 1;
    bool early = sharesBarrierOfMean(graph, space, root);
    for (auto [other, barrier] : behind)
      if (graph.dependsOn(root.expr, other))
        own = std::max(own, barrier + (early ? 0 : 1));
    behind.push_back({root.expr, own});
    exchanges = std::max(exchanges, own);
  }
  return exchanges;
}

/// Returns a dim of the grid that the root reduces, or -1.
static int64_t reducedGridDim(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &root) {
  for (int64_t dim : graph.exprs()[root.expr].reductions)
    if (llvm::is_contained(space.grid, root.dims[dim]))
      return root.dims[dim];
  return -1;
}

std::string tilewright::whyNotShared(const TensorGraph &graph, const GroupChoice &choice, const IterationSpace &space,
                                     const GroupPlan &group, NumericsMode numerics) {
  auto whyNotReduced = [&](const TensorExpr &expr) -> std::string {
    if (group.threads == 0 || group.workgroups != group.numTiles() || group.steps > 0)
      return "only blocks of a GPU with one whole tile each exchange parts of rows";
    if (numerics == NumericsMode::strict)
      return "blocks that exchange parts of rows add up in another order than the graph, and numerics are strict";
    bool leaves = llvm::any_of(expr.op->getResults(), [&](Value result) { return leavesGroup(graph, choice, result); });
    return leaves || expr.kind != ExprKind::reduction ? "its result leaves the group, or it is a contraction" : "";
  };
  for (const GroupRoot &root : space.roots) {
    const TensorExpr &expr = graph.exprs()[root.expr];
    std::string subject = "op " + std::to_string(root.expr) + ": ";
    if (int64_t dim = reducedGridDim(graph, space, root); dim >= 0)
      if (std::string why = whyNotReduced(expr); !why.empty())
        return subject + "reduces grid dim " + std::to_string(dim) + ": " + why;
    tile::Form form = group.op(root.expr).form;
    if (form != formOf(expr) && form == tile::Form::twoMomentVariance && !sharesBarrierOfMean(graph, space, root))
      return subject + "its form is '" + tile::stringifyForm(form).str() +
             "', but it does not add up squares of differences from a mean in equal parts of rows that blocks share";
  }
  return "";
}
