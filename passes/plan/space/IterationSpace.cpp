#include "passes/plan/space/IterationSpace.h"

#include "passes/graph/Form.h"
#include "passes/graph/CausalBound.h"
#include "passes/graph/OnlineSoftmax.h"
#include "passes/plan/space/PlanNumerics.h"
#include "passes/plan/space/WalkedDim.h"
#include "passes/graph/Eligibility.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include <algorithm>
#include <functional>
#include <numeric>

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
  // Tiles along the dims that the end depends on.
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
    return 0; // only a block of it is there at a time
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

/// Whether a nest computes a division or a transcendental function of the lanes alone. Code generation has the loop of
/// the lanes outside then, so that it is computed once for all rows (NestStructure).
static bool hasLanesFirst(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &root) {
  int64_t lane = space.threads > 0 || space.vector < 0 ? -1 : llvm::find(root.dims, space.vector) - root.dims.begin();
  if (lane < 0 || lane == static_cast<int64_t>(root.dims.size()) ||
      llvm::is_contained(graph.exprs()[root.expr].reductions, lane))
    return false;
  return llvm::any_of(root.evaluated, [&](const Evaluation &evaluation) {
    bool varies = evaluation.index.isFunctionOfDim(lane);
    for (auto [dim, place] : llvm::enumerate(root.dims))
      varies &= place < 0 || static_cast<int64_t>(dim) == lane || !evaluation.index.isFunctionOfDim(dim);
    return varies && specialOps(graph.exprs()[evaluation.expr]) > 0;
  });
}

SmallVector<unsigned> IterationSpace::loopsAround(const TensorGraph &graph, const GroupRoot &root,
                                              const Evaluation &evaluation) const {
  ArrayRef<int64_t> reductions = graph.exprs()[root.expr].reductions;
  bool lanesFirst = hasLanesFirst(graph, *this, root);
  auto depth = [&](unsigned dim) {
    bool isReduced = llvm::is_contained(reductions, static_cast<int64_t>(dim));
    bool isFirst = lanesFirst && root.dims[dim] == vector;
    return std::make_pair(isReduced, isFirst ? -1 : root.dims[dim]);
  };
  SmallVector<unsigned> loops;
  for (auto [dim, place] : llvm::enumerate(root.dims))
    if (place >= 0)
      loops.push_back(dim);
  llvm::sort(loops, [&](unsigned a, unsigned b) { return depth(a) < depth(b); });
  while (!loops.empty() && !evaluation.index.isFunctionOfDim(loops.back()))
    loops.pop_back();
  return loops;
}

double IterationSpace::pointsEvaluated(const TensorGraph &graph, const GroupRoot &root, const Evaluation &evaluation) const {
  SmallVector<unsigned> loops = loopsAround(graph, root, evaluation);
  double points = 1;
  for (auto [dim, place] : llvm::enumerate(root.dims))
    if (place >= 0)
      points *= llvm::is_contained(loops, dim) ? extents[place] : llvm::divideCeil(extents[place], tiles[place]);
  return points;
}

bool tilewright::leavesGroup(const TensorGraph &graph, const GroupChoice &part, Value value) {
  return llvm::any_of(value.getUses(), [&](OpOperand &use) {
    int64_t user = graph.indexOf(use.getOwner());
    if (user < 0 || !part.contains(user))
      return true;
    // An initial accumulator is an operand, but the expression does not read it.
    return llvm::none_of(graph.exprs()[user].inputs,
                         [&](const TensorAccess &access) { return access.operand == use.getOperandNumber(); });
  });
}

bool tilewright::preparesOperand(const TensorGraph &graph, const GroupChoice &part, ArrayRef<GroupRoot> roots,
                                 unsigned expr) {
  const TensorExpr &prepared = graph.exprs()[expr];
  if (!prepared.oneReliesOnOne() ||
      llvm::any_of(prepared.op->getResults(), [&](Value result) { return leavesGroup(graph, part, result); }))
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

//===----------------------------------------------------------------------===//
// Which roots share a nest
//===----------------------------------------------------------------------===//

namespace {
/// Roots join the first nest that runs late enough for what they read and has the same dims and reductions, as lowering
/// does (Movement). Inside a nest a value is handed over in a register.
class NestAssigner {
public:
  NestAssigner(const TensorGraph &graph, const GroupChoice &part, IterationSpace &space)
      : graph(graph), part(part), space(space) {}

  void assign() {
    for (GroupRoot &root : space.roots)
      place(root);
  }

private:
  struct Nest {
    SmallVector<int64_t> dims, reductions;
    bool contracts = false; ///< the nest is one contraction's alone: its loops are those of a register block
    int64_t running = -1;   ///< the root whose maximum others of the nest use while it is accumulated
  };

  void place(GroupRoot &root) {
    bool contracts = graph.exprs()[root.expr].kind == ExprKind::contraction;
    SmallVector<int64_t> dims = placed(root), reductions;
    for (int64_t dim : graph.exprs()[root.expr].reductions)
      if (root.dims[dim] >= 0)
        reductions.push_back(root.dims[dim]);
    llvm::sort(reductions);
    unsigned first = 0;
    for (const RootAccess &access : root.accesses)
      if (access.producer >= 0) {
        const GroupRoot &producer = space.root(access.producer);
        bool shared = placed(producer) == dims &&
                      (readsSamePoint(root, access, producer) ? sharesReference(root, producer)
                                                              : takesReference(root, access, producer));
        first = std::max(first, producer.nest + (shared ? 0 : 1));
      }
    for (root.nest = first; root.nest < nests.size(); ++root.nest) {
      Nest &nest = nests[root.nest];
      if (contracts || nest.contracts || nest.dims != dims ||
          (!reductions.empty() && !nest.reductions.empty() && nest.reductions != reductions))
        continue;
      if (!reductions.empty())
        nest.reductions = reductions;
      if (root.reference >= 0 && space.root(root.reference).nest != root.nest)
        root.reference = -1; // the maximum is complete
      if (root.reference >= 0)
        nest.running = root.reference;
      return;
    }
    root.reference = -1;
    nests.push_back({dims, reductions, contracts});
  }

  /// What is relative to a reference is handed over in a register to what uses it as well.
  bool sharesReference(GroupRoot &root, const GroupRoot &producer) {
    if (producer.reference < 0)
      return true;
    if (mayUseReference(root, producer.reference))
      root.reference = producer.reference;
    return root.reference == producer.reference;
  }

  /// Whether the root may read the producer's maximum while it is accumulated.
  bool takesReference(GroupRoot &root, const RootAccess &access, const GroupRoot &producer) {
    const TensorExpr &maximum = graph.exprs()[producer.expr];
    if (formOf(maximum) != kRunningMaximum || producer.dims[maximum.reductions.front()] != space.vector ||
        !readsOwnPlace(root, access, producer) || !mayUseReference(root, producer.expr))
      return false;
    if (int64_t running = nests[producer.nest].running; running >= 0 && running != producer.expr)
      return false;
    root.reference = producer.expr;
    return true;
  }

  /// What is stored relative to a reference is corrected where it is read, so it must not leave.
  bool mayUseReference(const GroupRoot &root, unsigned maximum) {
    auto [known, isNew] = relations.try_emplace(maximum);
    if (isNew)
      known->second = relateTo(graph.exprs(), maximum, [&](unsigned expr, unsigned input) -> int64_t {
        for (unsigned edge : graph.inEdges(expr))
          if (graph.edges()[edge].input == input && part.scopes.contains(edge))
            return graph.edges()[edge].producer;
        return -1;
      });
    Relation relation = known->second[root.expr];
    return relation == Relation::sum ||
           (relation == Relation::proportional && !leavesGroup(graph, part, graph.exprs()[root.expr].op->getResult(0)));
  }

  static SmallVector<int64_t> placed(const GroupRoot &root) {
    SmallVector<int64_t> dims = llvm::to_vector(llvm::make_filter_range(root.dims, [](int64_t at) { return at >= 0; }));
    llvm::sort(dims);
    return dims;
  }

  bool readsSamePoint(const GroupRoot &root, const RootAccess &access, const GroupRoot &producer) const {
    return graph.exprs()[producer.expr].oneReliesOnOne() && readsOwnPlace(root, access, producer);
  }

  /// Whether the root reads, at each point, what the producer computes for that place of the space.
  bool readsOwnPlace(const GroupRoot &root, const RootAccess &access, const GroupRoot &producer) const {
    const TensorExpr &expr = graph.exprs()[producer.expr];
    if (access.guard != IntegerSet())
      return false;
    auto place = [](const GroupRoot &of, AffineExpr index) {
      int64_t dim = pureDim(index);
      return dim < 0 ? -1 : of.dims[dim];
    };
    return llvm::all_of(llvm::zip(access.map.getResults(), expr.results[access.result].getResults()), [&](auto pair) {
      auto [read, write] = pair;
      return place(root, read) == place(producer, write) && (pureDim(read) >= 0 || isa<AffineConstantExpr>(read));
    });
  }

  const TensorGraph &graph;
  const GroupChoice &part;
  IterationSpace &space;
  std::vector<Nest> nests;
  llvm::DenseMap<unsigned, SmallVector<Relation>> relations; ///< to a maximum
};
} // namespace

//===----------------------------------------------------------------------===//
// Which dims are one dim
//===----------------------------------------------------------------------===//

namespace {
constexpr int64_t kLongRow = 3;   ///< vectors from which the lanes past the end of a row hardly count

/// Classes of dims of roots. A class never holds two dims of one root.
class DimClasses {
public:
  DimClasses(const TensorGraph &graph, const std::vector<GroupRoot> &roots) {
    for (auto [r, root] : llvm::enumerate(roots)) {
      const TensorExpr &expr = graph.exprs()[root.expr];
      std::vector<int64_t> &own = classOf.emplace_back(expr.domain.size(), -1);
      for (unsigned dim = 0; dim < expr.domain.size(); ++dim)
        if (hasPlace(expr, dim)) {
          own[dim] = members.size();
          members.push_back({{static_cast<unsigned>(r), dim}});
          extents.push_back(expr.domain[dim]);
        }
    }
    resident.resize(members.size());
  }

  int64_t get(unsigned root, int64_t dim) const { return dim < 0 ? -1 : classOf[root][dim]; }
  bool has(int64_t dimClass, unsigned root) const {
    return llvm::any_of(members[dimClass], [&](auto &member) { return member.first == root; });
  }

  void unite(int64_t a, int64_t b) {
    if (a < 0 || b < 0 || a == b || extents[a] != extents[b])
      return;
    for (auto &member : members[b])
      if (has(a, member.first))
        return;
    for (auto &member : members[b])
      classOf[member.first][member.second] = a;
    llvm::append_range(members[a], members[b]);
    members[b].clear();
  }

  std::vector<std::vector<int64_t>> classOf;                       ///< by root and dim; -1: no place
  std::vector<SmallVector<std::pair<unsigned, unsigned>>> members; ///< of a class; empty: united with another
  std::vector<int64_t> extents;
  std::vector<bool> resident; ///< lies whole in every tile, because some access is not local to it
};

/// Everything between collecting the roots and choosing tiles.
class SpaceFinder {
public:
  SpaceFinder(const TensorGraph &graph, const GroupChoice &part)
      : graph(graph), part(part), roots(collectRoots(graph, part)), classes(graph, roots) {
    for (auto [r, root] : llvm::enumerate(roots))
      rootIndex[root.expr] = r;
    uniteAlongEdges();
    uniteAtSharedInputs();
    unitePeers();
    findResident();
  }

  bool isConnected() const {
    llvm::EquivalenceClasses<unsigned> components;
    llvm::DenseMap<Value, unsigned> readers;
    for (unsigned r = 0; r < roots.size(); ++r) {
      components.insert(r);
      for (const RootAccess &access : roots[r].accesses) {
        unsigned other = access.producer >= 0 ? rootIndex.lookup(access.producer)
                                              : readers.try_emplace(access.tensor, r).first->second;
        components.unionSets(r, other);
      }
    }
    return components.getNumClasses() <= 1;
  }

  /// The classes that may fill vector lanes, the one along which elements are neighbours first. Where that one has few
  /// points, rows may lie side by side in the lanes instead: `lanes` of them, of a vector register.
  SmallVector<int64_t> vectorClasses(int64_t lanes) const {
    SmallVector<int64_t> order = classOrder();
    int64_t first = vectorClass(order), rows = -1;
    SmallVector<int64_t> found = {first};
    if (lanes == 1 || first < 0 || classes.extents[first] >= kLongRow * lanes || contracts())
      return found;
    for (int64_t dimClass : order)
      if (dimClass != first && mayBeGrid(dimClass) && classes.extents[dimClass] >= lanes &&
          (rows < 0 || classes.extents[dimClass] >= classes.extents[rows]))
        rows = dimClass;
    if (rows >= 0)
      found.push_back(rows);
    return found;
  }

  /// Places the classes: the dims of the largest root in its order, then others; the vector dim last.
  IterationSpace place(int64_t vector) const {
    IterationSpace space;
    SmallVector<int64_t> order = classOrder();
    if (vector >= 0) {
      llvm::erase(order, vector);
      order.push_back(vector);
    }
    for (auto [position, dimClass] : llvm::enumerate(order)) {
      space.extents.push_back(classes.extents[dimClass]);
      if (mayBeGrid(dimClass))
        space.grid.push_back(position);
    }
    // What is kept for tiles along dims that it has not is computed least often where those tiles follow each other.
    std::stable_partition(space.grid.begin(), space.grid.end(),
                          [&](int64_t position) { return hasAllRoots(order[position]); });
    space.vector = vector < 0 ? -1 : static_cast<int64_t>(order.size()) - 1;
    space.roots = roots;
    for (auto [r, root] : llvm::enumerate(space.roots))
      for (int64_t dimClass : classes.classOf[r])
        root.dims.push_back(dimClass < 0 ? -1 : llvm::find(order, dimClass) - order.begin());
    return space;
  }

private:
  int64_t classAt(unsigned r, AffineExpr expr) const { return classes.get(r, pureDim(expr)); }

  /// The class of the producer's dim that stands at an index of its result, -1 for single points.
  int64_t producerClass(const RootAccess &access, unsigned position) const {
    const TensorExpr &producer = graph.exprs()[access.producer];
    int64_t dim = pureDim(producer.results[access.result].getResult(position));
    return classes.get(rootIndex.lookup(access.producer), dim);
  }

  void uniteAlongEdges() {
    for (auto [r, root] : llvm::enumerate(roots))
      for (const RootAccess &access : root.accesses)
        if (access.producer >= 0)
          for (auto [position, expr] : llvm::enumerate(access.map.getResults()))
            classes.unite(producerClass(access, position), classAt(r, expr));
  }

  void uniteAtSharedInputs() {
    llvm::MapVector<std::pair<Value, unsigned>, SmallVector<std::pair<unsigned, int64_t>>> readers;
    for (auto [r, root] : llvm::enumerate(roots))
      for (const RootAccess &access : root.accesses)
        if (access.producer < 0)
          for (auto [position, expr] : llvm::enumerate(access.map.getResults()))
            if (int64_t dim = pureDim(expr); dim >= 0)
              readers[{access.tensor, static_cast<unsigned>(position)}].push_back({static_cast<unsigned>(r), dim});
    for (auto &entry : readers)
      for (auto &[r, dim] : ArrayRef(entry.second).drop_front())
        for (auto &[first, firstDim] : entry.second)
          if (first != r)
            classes.unite(classes.get(first, firstDim), classes.get(r, dim));
  }

  /// Roots that only move and compute elements of the part's inputs do not wait for each other: where their domains are
  /// alike they walk them together, wherever in a shared input each of them is (the pieces of a split).
  void unitePeers() {
    SmallVector<unsigned> peers;
    for (unsigned r = 0; r < roots.size(); ++r)
      if (graph.exprs()[roots[r].expr].oneReliesOnOne() &&
          llvm::all_of(roots[r].accesses, [](const RootAccess &access) { return access.producer < 0; }))
        peers.push_back(r);
    for (auto [i, peer] : llvm::enumerate(peers))
      for (unsigned first : ArrayRef(peers).take_front(i)) {
        const SmallVector<int64_t> &domain = graph.exprs()[roots[peer].expr].domain;
        if (domain != graph.exprs()[roots[first].expr].domain)
          continue;
        for (unsigned dim = 0; dim < domain.size(); ++dim)
          classes.unite(classes.get(first, dim), classes.get(peer, dim));
      }
  }

  /// A tile of a root's result serves a reader only along dims at which both stand at the same index.
  void findResident() {
    for (auto [r, root] : llvm::enumerate(roots))
      for (const RootAccess &access : root.accesses)
        if (access.producer >= 0)
          for (auto [position, expr] : llvm::enumerate(access.map.getResults())) {
            int64_t produced = producerClass(access, position);
            if (produced >= 0 && classAt(r, expr) != produced)
              classes.resident[produced] = true;
          }
  }

  bool isReduced(int64_t dimClass) const {
    return llvm::any_of(classes.members[dimClass], [&](auto &member) {
      return llvm::is_contained(graph.exprs()[roots[member.first].expr].reductions,
                                static_cast<int64_t>(member.second));
    });
  }

  bool contracts() const {
    return llvm::any_of(roots,
                        [&](const GroupRoot &root) { return graph.exprs()[root.expr].kind == ExprKind::contraction; });
  }

  bool hasAllRoots(int64_t dimClass) const { return classes.members[dimClass].size() == roots.size(); }

  bool mayBeGrid(int64_t dimClass) const {
    if (classes.extents[dimClass] <= 1 || classes.resident[dimClass] || isReduced(dimClass))
      return false;
    return llvm::all_of(llvm::seq<unsigned>(0, roots.size()), [&](unsigned r) {
      return classes.has(dimClass, r) || preparesOperand(graph, part, roots, roots[r].expr);
    });
  }

  SmallVector<int64_t> classOrder() const {
    SmallVector<unsigned> byLargest(roots.size());
    std::iota(byLargest.begin(), byLargest.end(), 0);
    llvm::sort(byLargest, [&](unsigned a, unsigned b) {
      int64_t left = graph.exprs()[roots[a].expr].domainSize(), right = graph.exprs()[roots[b].expr].domainSize();
      return left != right ? left > right : a > b;
    });
    llvm::SetVector<int64_t> order;
    for (unsigned r : byLargest)
      for (int64_t dimClass : classes.classOf[r])
        if (dimClass >= 0)
          order.insert(dimClass);
    return order.takeVector();
  }

  /// The class that stands at the innermost index, with stride one, in most of the bytes read and written.
  int64_t vectorClass(ArrayRef<int64_t> order) const {
    llvm::DenseMap<int64_t, double> weight;
    for (auto [r, root] : llvm::enumerate(roots)) {
      const TensorExpr &expr = graph.exprs()[root.expr];
      if (std::optional<ContractionRoles> roles = rolesOf(graph, root); roles && expr.kind == ExprKind::contraction) {
        weight[classes.get(r, roles->lane)] += expr.domainSize(); // register blocks have no other way
        continue;
      }
      for (const RootAccess &access : root.accesses)
        weigh(weight, r, access.map, access.tensor, 1);
      // Gathering is cheaper than scattering, so writing in order counts double.
      for (auto [result, map] : llvm::zip(expr.op->getResults(), expr.results))
        weigh(weight, r, map, result, 2);
    }
    int64_t best = order.empty() ? -1 : order.back();
    for (int64_t dimClass : order)
      if (weight.lookup(dimClass) >= weight.lookup(best) && classes.extents[dimClass] > 1)
        best = dimClass;
    return best;
  }

  void weigh(llvm::DenseMap<int64_t, double> &weight, unsigned r, AffineMap map, Value tensor, double factor) const {
    auto type = cast<RankedTensorType>(tensor.getType());
    for (int64_t position = type.getRank() - 1; position >= 0; --position) {
      if (type.getDimSize(position) == 1)
        continue;
      if (int64_t dimClass = classes.get(r, unitStrideDim(map.getResult(position))); dimClass >= 0)
        weight[dimClass] +=
            factor * static_cast<double>(std::min(tensorBytes(tensor), graph.exprs()[roots[r].expr].domainSize() *
                                                                           tile::elementBytes(type.getElementType())));
      return;
    }
  }

  const TensorGraph &graph;
  const GroupChoice &part;
  std::vector<GroupRoot> roots;
  DimClasses classes;
  llvm::DenseMap<unsigned, unsigned> rootIndex;
};
} // namespace

std::vector<IterationSpace> tilewright::placeIterationSpaces(const TensorGraph &graph, const GroupChoice &part, int64_t lanes) {
  SpaceFinder finder(graph, part);
  std::vector<IterationSpace> spaces;
  if (!finder.isConnected())
    return spaces;
  for (auto [number, vector] : llvm::enumerate(finder.vectorClasses(lanes))) {
    IterationSpace &space = spaces.emplace_back(finder.place(vector));
    space.lanes = lanes;
    space.rowsInLanes = number > 0;
    NestAssigner(graph, part, space).assign();
  }
  return spaces;
}
