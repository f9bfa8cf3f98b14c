#include "passes/plan/search/Dependences.h"

using namespace tilewright;
using llvm::ArrayRef;

/// Returns the ops that depend on one of the expressions, if `forwards`, or else those that one depends on.
static std::vector<bool> reached(const Partition &partition, ArrayRef<unsigned> exprs, bool forwards) {
  std::vector<bool> marked(partition.numOps());
  for (unsigned expr : exprs)
    marked[partition.opOf(expr)] = true;
  // Program order is a topological order, so one pass suffices.
  for (unsigned i = 0; i < marked.size(); ++i) {
    unsigned op = forwards ? i : marked.size() - 1 - i;
    for (unsigned dependent : partition.dependents(op)) {
      if (forwards && marked[op])
        marked[dependent] = true;
      else if (!forwards && marked[dependent])
        marked[op] = true;
    }
  }
  return marked;
}

Dependences::Dependences(const Partition &partition, ArrayRef<unsigned> exprs) {
  std::vector<bool> later = reached(partition, exprs, /*forwards=*/true),
                    earlier = reached(partition, exprs, /*forwards=*/false);
  llvm::DenseMap<unsigned, unsigned> exprAt, nodeAt;
  for (unsigned expr : exprs)
    exprAt[partition.opOf(expr)] = expr;
  for (unsigned op = 0; op < partition.numOps(); ++op) {
    if (!later[op] || !earlier[op])
      continue;
    nodeAt[op] = exprOf_.size();
    auto expr = exprAt.find(op);
    if (expr != exprAt.end())
      nodeOf_[expr->second] = exprOf_.size();
    exprOf_.push_back(expr == exprAt.end() ? -1 : static_cast<int64_t>(expr->second));
  }
  successors_.resize(size());
  for (auto [op, node] : nodeAt)
    for (unsigned dependent : partition.dependents(op))
      if (auto next = nodeAt.find(dependent); next != nodeAt.end())
        successors_[node].push_back(next->second);
  below.assign(size(), ExprSet(size()));
  above = below;
  for (unsigned node = size(); node-- > 0;)
    for (unsigned next : successors_[node]) {
      below[node].insert(next);
      below[node] |= below[next];
    }
  for (unsigned node = 0; node < size(); ++node)
    for (unsigned next : successors_[node]) {
      above[next].insert(node);
      above[next] |= above[node];
    }
}

bool Dependences::isConvex(ArrayRef<unsigned> exprs) const {
  ExprSet own(size()), later(size()), earlier(size());
  for (unsigned expr : exprs) {
    unsigned node = nodeOf(expr);
    own.insert(node);
    later |= below[node];
    earlier |= above[node];
  }
  return ((later & earlier) - own).empty();
}
