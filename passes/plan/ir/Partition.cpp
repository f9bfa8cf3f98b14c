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
  int64_t lastPinned = -1;
  for (unsigned i = 0; i < ops.size(); ++i) {
    Operation *op = ops[i];
    llvm::SetVector<unsigned> predecessors;
    op->walk([&](Operation *nested) {
      for (Value operand : nested->getOperands())
        if (Operation *definition = operand.getDefiningOp())
          if (Operation *ancestor = block.findAncestorOpInBlock(*definition); ancestor && ancestor != op)
            predecessors.insert(index[ancestor]);
    });
    if (!isMovable(op)) {
      if (lastPinned >= 0)
        predecessors.insert(lastPinned);
      lastPinned = i;
    }
    for (unsigned predecessor : predecessors)
      successors[predecessor].push_back(i);
  }
  for (const TensorExpr &expr : graph.exprs())
    opOf_.push_back(index[expr.op]);
  separate();
}

void Partition::separate() {
  group.resize(ops.size());
  std::iota(group.begin(), group.end(), 0);
  earlier = group;
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

unsigned Partition::intervalOf(unsigned op) const {
  while (earlier[op] != op)
    op = earlier[op] = earlier[earlier[op]]; // shortens the way for the next call
  return op;
}

bool Partition::search(unsigned from, unsigned to, bool indirectly) const {
  unsigned last = intervalOf(to);
  if (intervalOf(from) > last)
    return false;
  llvm::BitVector seen(ops.size());
  std::vector<unsigned> stack = {from};
  seen.set(from);
  while (!stack.empty()) {
    unsigned current = stack.back();
    stack.pop_back();
    for (unsigned op : members[current])
      for (unsigned successor : successors[op]) {
        unsigned next = group[successor];
        if (next == to && !(indirectly && current == from))
          return true;
        if (next == to || seen.test(next))
          continue;
        seen.set(next);
        if (intervalOf(successor) <= last)
          stack.push_back(next);
      }
  }
  return false;
}

bool Partition::canMerge(unsigned a, unsigned b) const {
  auto holdsApart = [&](unsigned name) { return llvm::any_of(members[name], [&](unsigned op) { return apart[op]; }); };
  return !holdsApart(a) && !holdsApart(b) && !search(a, b, /*indirectly=*/true) && !search(b, a, /*indirectly=*/true);
}

bool Partition::reaches(unsigned from, unsigned to) const { return search(from, to, /*indirectly=*/false); }

unsigned Partition::merge(unsigned a, unsigned b) {
  if (a == b)
    return a;
  unsigned first = std::min(intervalOf(a), intervalOf(b));
  for (unsigned op : {a, b})
    for (unsigned at = intervalOf(op); at > first; at = intervalOf(at))
      earlier[at] = at - 1;
  for (unsigned op : members[b])
    group[op] = a;
  llvm::append_range(members[a], members[b]);
  members[b].clear();
  llvm::sort(members[a]);
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
