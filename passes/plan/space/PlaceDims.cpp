// Finds out which dims of different roots are the same dim of the iteration space, and orders the dims of the space.
#include "passes/plan/space/AssignNests.h"
#include "passes/plan/space/IterationSpace.h"

#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include <algorithm>
#include <numeric>

using namespace mlir;
using namespace tilewright;

namespace {

/// Equivalence classes of the roots' dims. A class never has two dims of one root.
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

  std::vector<std::vector<int64_t>> classOf; ///< class by root and dim; -1: not a dim of the space
  /// Root and dim of each member of a class. The list is empty if the class was united with another.
  std::vector<SmallVector<std::pair<unsigned, unsigned>>> members;
  std::vector<int64_t> extents;
  std::vector<bool> resident; ///< true if every tile has the whole dim, since some access crosses tiles
};

/// Builds iteration spaces from the roots, up to the choice of tiles.
class SpaceFinder {
public:
  SpaceFinder(const TensorGraph &graph, const GroupChoice &group, RowPlacement rows)
      : graph(graph), group(group), rows(rows), roots(collectRoots(graph, group)), classes(graph, roots) {
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

  /// Returns the classes that may fill vector lanes, starting with the one along which elements are contiguous. If that
  /// one has fewer points than a long row, a second class may fill the `lanes` lanes of a register with elements of
  /// different rows.
  SmallVector<int64_t> vectorClasses(int64_t lanes, int64_t longRow) const {
    SmallVector<int64_t> order = classOrder();
    int64_t first = vectorClass(order, lanes), rows = -1;
    SmallVector<int64_t> found = {first};
    if (lanes == 1 || first < 0 || classes.extents[first] >= longRow * lanes || contracts())
      return found;
    for (int64_t dimClass : order)
      if (dimClass != first && mayBeGrid(dimClass) && classes.extents[dimClass] >= lanes &&
          (rows < 0 || classes.extents[dimClass] >= classes.extents[rows]))
        rows = dimClass;
    if (rows >= 0)
      found.push_back(rows);
    return found;
  }

  /// Orders the dims of the space: those of the largest root in its order, then the others, and the vector dim last.
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
    // Results kept along dims that their root does not have are recomputed least often if these dims come last.
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

  /// Returns the class of the producer's dim at a position of its result; -1 for single points.
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

  /// Roots that only move and compute elements of the group's inputs are independent of each other. Roots with equal
  /// domains are walked together, even if they read different pieces of a shared input (as after a split).
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

  /// A reader can use a tile of a root's result only along dims at which both have the same index. Other dims must be
  /// whole in every tile.
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

  /// Returns true if blocks can have parts of rows along this dim: it is the N dim of a contraction, and results of
  /// reductions along it stay in the group.
  bool mayBeShared(int64_t dimClass) const {
    bool isN = false, stays = true;
    for (auto [r, dim] : classes.members[dimClass]) {
      const TensorExpr &expr = graph.exprs()[roots[r].expr];
      bool reduces = llvm::is_contained(expr.reductions, static_cast<int64_t>(dim));
      std::optional<ContractionRoles> roles = rolesOf(graph, roots[r]);
      isN |= expr.kind == ExprKind::contraction && roles && roles->n == static_cast<int64_t>(dim);
      stays &= !reduces || (expr.kind == ExprKind::reduction &&
                            llvm::none_of(expr.op->getResults(), [&](Value result) {
                              return leavesGroup(graph, group, result);
                            }));
    }
    return rows == RowPlacement::shared && isN && stays;
  }

  bool mayBeGrid(int64_t dimClass) const {
    if (classes.extents[dimClass] <= 1 || classes.resident[dimClass] ||
        (isReduced(dimClass) && !mayBeShared(dimClass)))
      return false;
    return llvm::all_of(llvm::seq<unsigned>(0, roots.size()), [&](unsigned r) {
      return classes.has(dimClass, r) || preparesOperand(graph, group, roots, roots[r].expr);
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

  /// Returns true if the class is a dim of windows, such as the columns of a pool, that is too short for `lanes` lanes.
  bool isShortWindow(int64_t dimClass, int64_t lanes) const {
    return dimClass >= 0 && classes.extents[dimClass] < lanes && isReduced(dimClass) &&
           llvm::any_of(classes.members[dimClass], [&](auto &member) {
             return llvm::any_of(roots[member.first].accesses, [&](const RootAccess &access) {
               return llvm::any_of(access.map.getResults(), [&](AffineExpr index) {
                 return index.isFunctionOfDim(member.second) && pureDim(index) < 0;
               });
             });
           });
  }

  /// Returns the class with unit stride at the innermost index of most of the bytes read and written.
  int64_t vectorClass(ArrayRef<int64_t> order, int64_t lanes) const {
    llvm::DenseMap<int64_t, double> weight;
    for (auto [r, root] : llvm::enumerate(roots)) {
      const TensorExpr &expr = graph.exprs()[root.expr];
      if (std::optional<ContractionRoles> roles = rolesOf(graph, root); roles && expr.kind == ExprKind::contraction) {
        weight[classes.get(r, roles->n)] += expr.domainSize(); // a register block must vectorize this dim
        continue;
      }
      for (const RootAccess &access : root.accesses)
        weigh(weight, r, access.map, access.tensor, 1);
      // Gathering is cheaper than scattering, so contiguous stores count double.
      for (auto [result, map] : llvm::zip(expr.op->getResults(), expr.results))
        weigh(weight, r, map, result, 2);
    }
    int64_t best = order.empty() ? -1 : order.back();
    for (int64_t dimClass : order)
      if (classes.extents[dimClass] > 1 && !isShortWindow(dimClass, lanes) &&
          (isShortWindow(best, lanes) || weight.lookup(dimClass) >= weight.lookup(best)))
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
  const GroupChoice &group;
  RowPlacement rows;
  std::vector<GroupRoot> roots;
  DimClasses classes;
  llvm::DenseMap<unsigned, unsigned> rootIndex;
};
} // namespace

std::vector<IterationSpace> tilewright::placeIterationSpaces(const TensorGraph &graph, const GroupChoice &group,
                                                             const Target &target, RowPlacement rows) {
  SpaceFinder finder(graph, group, rows);
  std::vector<IterationSpace> spaces;
  if (!finder.isConnected())
    return spaces;
  for (auto [number, vector] : llvm::enumerate(finder.vectorClasses(target.lanes(), target.costs.cpu.longRow))) {
    IterationSpace &space = spaces.emplace_back(finder.place(vector));
    space.lanes = target.lanes();
    space.rowsInLanes = number > 0;
    assignNests(graph, group, space);
  }
  return spaces;
}
