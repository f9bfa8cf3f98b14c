#include "passes/plan/space/IterationSpace.h"

#include "passes/graph/CausalBound.h"
#include "passes/graph/Eligibility.h"
#include "passes/plan/space/PlanNumerics.h"
#include "passes/plan/space/WalkedDim.h"
#include "llvm/ADT/SetVector.h"
#include <algorithm>
#include <functional>

using namespace mlir;
using namespace tilewright;

int64_t IterationSpace::numTiles() const {
  int64_t count = 1;
  for (int64_t dim : grid)
    count *= llvm::divideCeil(extents[dim], tiles[dim]);
  return count;
}

int64_t IterationSpace::blocksPerTile() const {
  int64_t dim = walkedDim(extents, tiles, grid);
  return dim < 0 ? 1 : llvm::divideCeil(extents[dim], tiles[dim]);
}

double IterationSpace::countedShare() const {
  int64_t walked = walkedDim(extents, tiles, grid), blocks = blocksPerTile();
  if (walked < 0 || !counted)
    return 1;
  std::vector<int64_t> low(extents.size()), high = extents;
  for (int64_t &last : high)
    --last;
  double visited = 0, all = 0;
  // Sums over the tiles along those grid dims that the end of the counted points depends on.
  std::function<void(unsigned)> visit = [&](unsigned place) {
    if (place == grid.size()) {
      int64_t end = std::clamp<int64_t>(largestOver(counted, low, high), 0, extents[walked]);
      visited += llvm::divideCeil(end, tiles[walked]);
      all += blocks;
      return;
    }
    int64_t dim = grid[place];
    if (!counted.isFunctionOfDim(dim))
      return visit(place + 1);
    for (int64_t first = 0; first < extents[dim]; first += tiles[dim]) {
      low[dim] = first;
      high[dim] = std::min(first + tiles[dim], extents[dim]) - 1;
      visit(place + 1);
    }
  };
  visit(0);
  return visited / all;
}

double IterationSpace::visitedShare(const GroupRoot &root) const {
  int64_t walked = walkedDim(extents, tiles, grid);
  return walked >= 0 && llvm::is_contained(root.dims, walked) ? countedShare() : 1;
}

int64_t IterationSpace::keptAlong(const GroupRoot &root) const {
  if (llvm::is_contained(root.dims, walkedDim(extents, tiles, grid)))
    return 0; // a tile holds only one block of it at a time
  auto own = llvm::find_if(llvm::reverse(grid), [&](int64_t dim) { return llvm::is_contained(root.dims, dim); });
  return own - llvm::reverse(grid).begin();
}

int64_t IterationSpace::laneDim(const GroupRoot &root) const {
  int64_t best = -1;
  for (auto [dim, place] : llvm::enumerate(root.dims)) {
    if (place >= 0 && place == vector)
      return dim;
    if (place >= 0 && tiles[place] > 1 && (best < 0 || place > root.dims[best]))
      best = dim;
  }
  return best;
}

double IterationSpace::lanesPerPoint(const GroupRoot &root) const {
  int64_t dim = laneDim(root);
  if (dim < 0)
    return 1;
  int64_t tile = tiles[root.dims[dim]];
  return static_cast<double>(llvm::alignTo(tile, lanes)) / tile;
}

double IterationSpace::timesComputed(const GroupRoot &root) const {
  double around = 1, changes = 1, own = 1;
  int64_t kept = keptAlong(root);
  for (auto [place, dim] : llvm::enumerate(grid)) {
    int64_t count = llvm::divideCeil(extents[dim], tiles[dim]);
    bool isOwn = llvm::is_contained(root.dims, dim);
    own *= isOwn ? count : 1;
    (place + kept < grid.size() ? changes : around) *= count;
  }
  if (kept > 0 && around > 1)
    changes += workgroups - 1;
  return changes / own;
}

/// Returns true if a nest computes a division or a transcendental function that varies only along the vector dim. Code
/// generation then makes that dim the outer loop, so the function is computed once for all rows (NestStructure).
static bool hasLanesFirst(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &root) {
  int64_t lane = space.threads > 0 || space.vector < 0 ? -1 : llvm::find(root.dims, space.vector) - root.dims.begin();
  if (lane < 0 || lane == static_cast<int64_t>(root.dims.size()) ||
      llvm::is_contained(graph.exprs()[root.expr].reductions, lane))
    return false;
  return llvm::any_of(root.evaluated, [&](const Evaluation &evaluation) {
    auto variesAlong = [&](unsigned dim) {
      return root.dims[dim] >= 0 && static_cast<int64_t>(dim) != lane && evaluation.index.isFunctionOfDim(dim);
    };
    return llvm::none_of(llvm::seq<unsigned>(root.dims.size()), variesAlong) &&
           evaluation.index.isFunctionOfDim(lane) && specialOps(graph.exprs()[evaluation.expr]) > 0;
  });
}

NestLoops::NestLoops(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &root)
    : space(space), root(root) {
  ArrayRef<int64_t> reductions = graph.exprs()[root.expr].reductions;
  bool lanesFirst = hasLanesFirst(graph, space, root);
  auto depth = [&](unsigned dim) {
    bool isReduced = llvm::is_contained(reductions, static_cast<int64_t>(dim));
    bool isFirst = lanesFirst && root.dims[dim] == space.vector;
    return std::make_pair(isReduced, isFirst ? -1 : root.dims[dim]);
  };
  for (auto [dim, place] : llvm::enumerate(root.dims))
    if (place >= 0)
      loops.push_back(dim);
  llvm::sort(loops, [&](unsigned a, unsigned b) { return depth(a) < depth(b); });
}

ArrayRef<unsigned> NestLoops::around(const Evaluation &evaluation) const {
  ArrayRef<unsigned> enclosing = loops;
  while (!enclosing.empty() && !evaluation.index.isFunctionOfDim(enclosing.back()))
    enclosing = enclosing.drop_back();
  return enclosing;
}

double NestLoops::pointsEvaluated(const Evaluation &evaluation) const {
  ArrayRef<unsigned> enclosing = around(evaluation);
  double points = 1;
  for (auto [dim, place] : llvm::enumerate(root.dims))
    if (place >= 0)
      points *= llvm::is_contained(enclosing, dim) ? space.extents[place]
                                                   : llvm::divideCeil(space.extents[place], space.tiles[place]);
  return points;
}

bool tilewright::leavesGroup(const TensorGraph &graph, const GroupChoice &group, Value value) {
  return llvm::any_of(value.getUses(), [&](OpOperand &use) {
    int64_t user = graph.indexOf(use.getOwner());
    if (user < 0 || !group.contains(user))
      return true;
    // An initial accumulator is an operand, but the expression does not read it.
    return llvm::none_of(graph.exprs()[user].inputs,
                         [&](const TensorAccess &access) { return access.operand == use.getOperandNumber(); });
  });
}

std::optional<Declined> tilewright::whyNotGathered(const TensorGraph &graph, ArrayRef<unsigned> exprs) {
  auto isMember = [&](unsigned expr) { return llvm::is_contained(exprs, expr); };
  if (llvm::none_of(exprs, [&](unsigned expr) { return graph.gathersFrom(expr, isMember) >= 0; }))
    return std::nullopt;
  return Declined{"an op reads another's result at places that it computes", "an index that is known"};
}

bool tilewright::preparesOperand(const TensorGraph &graph, const GroupChoice &group, ArrayRef<GroupRoot> roots,
                                 unsigned expr) {
  const TensorExpr &prepared = graph.exprs()[expr];
  if (!prepared.oneReliesOnOne() ||
      llvm::any_of(prepared.op->getResults(), [&](Value result) { return leavesGroup(graph, group, result); }))
    return false;
  return prepared.kind == ExprKind::movement || llvm::all_of(roots, [&](const GroupRoot &reader) {
           return graph.exprs()[reader.expr].kind == ExprKind::contraction ||
                  llvm::none_of(reader.accesses, [&](const RootAccess &access) { return access.producer == expr; });
         });
}

const GroupRoot &IterationSpace::root(unsigned expr) const {
  return *llvm::find_if(roots, [&](const GroupRoot &root) { return root.expr == expr; });
}

SmallVector<unsigned> IterationSpace::readingNests(Value tensor) const {
  llvm::SmallSetVector<unsigned, 4> nests;
  for (const GroupRoot &reader : roots)
    for (const RootAccess &access : reader.accesses)
      if (access.tensor == tensor && (access.producer < 0 || root(access.producer).nest != reader.nest))
        nests.insert(reader.nest);
  return nests.takeVector();
}
