// Which dims of different roots are one dim of the space, and in which order the space has them.
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
constexpr int64_t kLongRow = 3; ///< vectors from which the lanes past the end of a row hardly count

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

std::vector<IterationSpace> tilewright::placeIterationSpaces(const TensorGraph &graph, const GroupChoice &part,
                                                             int64_t lanes) {
  SpaceFinder finder(graph, part);
  std::vector<IterationSpace> spaces;
  if (!finder.isConnected())
    return spaces;
  for (auto [number, vector] : llvm::enumerate(finder.vectorClasses(lanes))) {
    IterationSpace &space = spaces.emplace_back(finder.place(vector));
    space.lanes = lanes;
    space.rowsInLanes = number > 0;
    assignNests(graph, part, space);
  }
  return spaces;
}
