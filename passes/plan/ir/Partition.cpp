#include "passes/plan/ir/Partition.h"

#include "dialects/tile/TileDialect.h"

#include "mlir/IR/Block.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include <numeric>
#include <queue>

using namespace mlir;
using namespace tilewright;

/// Returns true for ops that may be moved past others: those MLIR knows to be free of effects, reads of constants, and
/// loops of such ops. The body of a loop may have been carried out before the block around it: a subprogram computes
/// tensors from tensors.
static bool isMovable(Operation *op) {
  if (isMemoryEffectFree(op) || isa<tile::SubprogramOp>(op) || op->getName().getStringRef() == "util.global.load" ||
      op->getName().getStringRef() == "hal.tensor.import")
    return true;
  if (!op->hasTrait<OpTrait::HasRecursiveMemoryEffects>())
    return false;
  return llvm::all_of(op->getRegions(), [](Region &region) {
    return llvm::all_of(region.getOps(), [](Operation &nested) { return isMovable(&nested); });
  });
}

Partition::Partition(const TensorGraph &graph, Block &block) {
  llvm::DenseMap<Operation *, unsigned> index;
  for (Operation &op : block) {
    index[&op] = ops.size();
    ops.push_back(&op);
  }
  successors.resize(ops.size());
  predecessors.resize(ops.size());
  int64_t lastPinned = -1;
  for (unsigned i = 0; i < ops.size(); ++i) {
    Operation *op = ops[i];
    llvm::SetVector<unsigned> needed;
    op->walk([&](Operation *nested) {
      for (Value operand : nested->getOperands())
        if (Operation *definition = operand.getDefiningOp())
          if (Operation *ancestor = block.findAncestorOpInBlock(*definition); ancestor && ancestor != op)
            needed.insert(index[ancestor]);
    });
    if (!isMovable(op)) {
      if (lastPinned >= 0)
        needed.insert(lastPinned);
      lastPinned = i;
    }
    for (unsigned predecessor : needed)
      successors[predecessor].push_back(i);
    predecessors[i].assign(needed.begin(), needed.end());
  }
  for (const TensorExpr &expr : graph.exprs())
    opOf_.push_back(index[expr.op]);
  separate();
}

void Partition::separate() {
  group.resize(ops.size());
  std::iota(group.begin(), group.end(), 0);
  position = group;
  ordering = Ordering::Sorted;
  members.assign(ops.size(), {});
  for (unsigned op : group)
    members[op].push_back(op);
  apart.assign(ops.size(), false);
}

Partition Partition::ungrouped() const {
  Partition other(*this);
  other.separate();
  return other;
}

template <typename Visit>
void Partition::visitNeighbours(unsigned name, const Edges &edges, Visit visit) const {
  for (unsigned op : members[name])
    for (unsigned neighbour : edges[op])
      if (group[neighbour] != name)
        visit(group[neighbour]);
}

void Partition::sort() const {
  std::vector<unsigned> waiting(ops.size());
  std::vector<unsigned> sorted;
  sorted.reserve(ops.size());
  unsigned groups = 0;
  for (unsigned name = 0; name < ops.size(); ++name) {
    visitNeighbours(name, predecessors, [&](unsigned) { ++waiting[name]; });
    groups += !members[name].empty();
    if (!members[name].empty() && waiting[name] == 0)
      sorted.push_back(name);
  }
  for (unsigned i = 0; i < sorted.size(); ++i) {
    position[sorted[i]] = i;
    visitNeighbours(sorted[i], successors, [&](unsigned next) {
      if (--waiting[next] == 0)
        sorted.push_back(next);
    });
  }
  ordering = sorted.size() == groups ? Ordering::Sorted : Ordering::Cyclic;
}

bool Partition::search(unsigned from, unsigned to, bool indirectly) const {
  if (ordering == Ordering::Stale)
    sort();
  bool isCyclic = ordering == Ordering::Cyclic;
  if (!isCyclic && position[from] >= position[to])
    return false;
  llvm::BitVector seen(ops.size());
  std::vector<unsigned> stack = {from};
  while (!stack.empty()) {
    unsigned current = stack.back();
    stack.pop_back();
    bool found = false;
    visitNeighbours(current, successors, [&](unsigned next) {
      found |= next == to && !(indirectly && current == from);
      if (next == to || next == from || seen.test(next) || (!isCyclic && position[next] > position[to]))
        return;
      seen.set(next);
      stack.push_back(next);
    });
    if (found)
      return true;
  }
  return false;
}

bool Partition::canMerge(unsigned a, unsigned b) const {
  auto holdsApart = [&](unsigned name) { return llvm::any_of(members[name], [&](unsigned op) { return apart[op]; }); };
  return !holdsApart(a) && !holdsApart(b) && !search(a, b, /*indirectly=*/true) && !search(b, a, /*indirectly=*/true);
}

bool Partition::reaches(unsigned from, unsigned to) const { return search(from, to, /*indirectly=*/false); }

std::vector<unsigned> Partition::between(unsigned from, const Edges &edges, unsigned least, unsigned most) const {
  std::vector<unsigned> found = {from};
  llvm::DenseSet<unsigned> seen = {from};
  for (unsigned i = 0; i < found.size(); ++i)
    visitNeighbours(found[i], edges, [&](unsigned next) {
      if (position[next] > least && position[next] < most && seen.insert(next).second)
        found.push_back(next);
    });
  found.erase(found.begin());
  llvm::sort(found, [&](unsigned left, unsigned right) { return position[left] < position[right]; });
  return found;
}

/// The groups between the two in the sorted sequence that lead to the later one move before the merged group, and those
/// that the earlier one leads to move behind it (Pearce and Kelly, "A dynamic topological sort algorithm for directed
/// acyclic graphs", 2006).
void Partition::placeMerged(unsigned a, unsigned b) {
  auto [first, last] = position[a] < position[b] ? std::pair(a, b) : std::pair(b, a);
  unsigned least = position[first], most = position[last];
  std::vector<unsigned> before = between(last, predecessors, least, most);
  std::vector<unsigned> behind = between(first, successors, least, most);
  std::vector<unsigned> places = {least, most};
  for (unsigned name : before)
    places.push_back(position[name]);
  for (unsigned name : behind)
    places.push_back(position[name]);
  llvm::sort(places);
  if (std::adjacent_find(places.begin(), places.end()) != places.end()) {
    ordering = Ordering::Stale; // a group is on a path from one to the other
    return;
  }
  for (auto [name, place] : llvm::zip(before, places))
    position[name] = place;
  position[a] = places[before.size()];
  for (auto [name, place] : llvm::zip_equal(behind, llvm::ArrayRef(places).take_back(behind.size())))
    position[name] = place;
}

void Partition::unite(unsigned a, unsigned b) {
  for (unsigned op : members[b])
    group[op] = a;
  size_t own = members[a].size();
  llvm::append_range(members[a], members[b]);
  std::inplace_merge(members[a].begin(), members[a].begin() + own, members[a].end());
  members[b].clear();
}

void Partition::join(ArrayRef<unsigned> exprs) {
  for (unsigned expr : exprs.drop_front())
    if (unsigned a = groupOf(exprs.front()), b = groupOf(expr); a != b)
      unite(a, b);
  ordering = Ordering::Stale;
}

unsigned Partition::merge(unsigned a, unsigned b) {
  if (a == b)
    return a;
  if (ordering == Ordering::Sorted)
    placeMerged(a, b);
  else
    ordering = Ordering::Stale;
  unite(a, b);
  return a;
}

std::optional<std::vector<std::vector<Operation *>>> Partition::order() const {
  std::vector<unsigned> waiting(ops.size());
  for (unsigned op = 0; op < ops.size(); ++op)
    for (unsigned successor : successors[op])
      if (group[successor] != group[op])
        ++waiting[group[successor]];
  // A group is placed where its last op was.
  using Entry = std::pair<unsigned, unsigned>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  unsigned groups = 0;
  for (unsigned name = 0; name < ops.size(); ++name) {
    if (members[name].empty())
      continue;
    ++groups;
    if (waiting[name] == 0)
      ready.push({members[name].back(), name});
  }
  std::vector<std::vector<Operation *>> sequence;
  while (!ready.empty()) {
    unsigned name = ready.top().second;
    ready.pop();
    std::vector<Operation *> &placed = sequence.emplace_back();
    for (unsigned op : members[name]) {
      placed.push_back(ops[op]);
      for (unsigned successor : successors[op])
        if (group[successor] != name && --waiting[group[successor]] == 0)
          ready.push({members[group[successor]].back(), group[successor]});
    }
  }
  if (sequence.size() != groups)
    return std::nullopt;
  return sequence;
}
