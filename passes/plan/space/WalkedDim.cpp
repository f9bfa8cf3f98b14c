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
    if (!isMaximumOfBlocks(formOf(graph.exprs()[roots[maximum].expr])))
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

static tile::ExprOp producerOf(Value value) {
  while (auto connect = value.getDefiningOp<tile::ConnectOp>())
    value = connect.getValue();
  return value.getDefiningOp<tile::ExprOp>();
}

Walk tilewright::walkAlong(tile::SubprogramOp subprogram, int64_t dim) {
  Block &body = subprogram.getBody().front();
  SmallVector<TensorExpr, 0> exprs;
  llvm::DenseMap<Operation *, unsigned> numbers;
  for (auto root : body.getOps<tile::ExprOp>()) {
    FailureOr<TensorExpr> expr = describe(root);
    if (failed(expr) || !root.getDims())
      return {"an expression of the kernel has no dims in its iteration space", {}, {}, -1, {}};
    numbers[root] = exprs.size();
    exprs.push_back(std::move(*expr));
  }
  SmallVector<WalkedRoot> roots;
  for (const TensorExpr &expr : exprs) {
    auto root = cast<tile::ExprOp>(expr.op);
    WalkedRoot &walked = roots.emplace_back(WalkedRoot{&expr, *root.getDims(), {}, false});
    walked.leaves = llvm::any_of(root->getUsers(), [](Operation *user) { return isa<tile::YieldOp>(user); });
    for (auto [i, input] : llvm::enumerate(root.getInputs()))
      if (tile::ExprOp producer = producerOf(input)) {
        auto connect = input.getDefiningOp<tile::ConnectOp>();
        unsigned result = cast<OpResult>(connect.getValue()).getResultNumber();
        walked.reads.push_back({numbers.lookup(producer), producer.getResultMap(result), root.getInputMap(i),
                                root.getGuard(i) != IntegerSet()});
      }
  }
  std::optional<tile::NumericsAttr> numerics = subprogram.getNumerics();
  bool allowed =
      numerics && llvm::any_of(numerics->getForms(), [](StringAttr form) { return isMaximumOfBlocks(form); });
  return decideWalk(roots, dim, [&](unsigned maximum) -> SmallVector<Relation> {
    if (!allowed)
      return {};
    auto producer = [&](unsigned expr, unsigned input) -> int64_t {
      tile::ExprOp root = producerOf(exprs[expr].inputs[input].tensor);
      return root ? static_cast<int64_t>(numbers.lookup(root)) : -1;
    };
    return relateTo(exprs, maximum, producer, /*throughRoundings=*/true);
  });
}

int64_t tilewright::walkedDim(ArrayRef<int64_t> extents, ArrayRef<int64_t> tiles, ArrayRef<int64_t> grid) {
  for (int64_t dim = 0; dim < static_cast<int64_t>(extents.size()); ++dim)
    if (tiles[dim] < extents[dim] && !llvm::is_contained(grid, dim))
      return dim;
  return -1;
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
