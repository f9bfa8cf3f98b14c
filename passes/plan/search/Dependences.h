// Dependences between the expressions that a search groups, through all ops of the block.
#ifndef TILEWRIGHT_PLAN_SEARCH_DEPENDENCES_H
#define TILEWRIGHT_PLAN_SEARCH_DEPENDENCES_H

#include "passes/plan/ir/Partition.h"
#include "passes/plan/search/ExprSet.h"

namespace tilewright {

/// A graph of nodes in program order: the expressions, and the other ops that lie on a path from one expression to
/// another.
class Dependences {
public:
  /// `exprs` are in program order. The partition must have each op in a group of its own.
  Dependences(const Partition &partition, llvm::ArrayRef<unsigned> exprs);

  unsigned size() const { return exprOf_.size(); }
  unsigned nodeOf(unsigned expr) const { return nodeOf_.find(expr)->second; }
  /// Returns the expression of a node, or -1 for another op.
  int64_t exprOf(unsigned node) const { return exprOf_[node]; }
  llvm::ArrayRef<unsigned> successors(unsigned node) const { return successors_[node]; }

  /// Returns true if no path between two of the expressions leaves the set, so that one kernel can compute them while
  /// every other op has a kernel of its own.
  bool isConvex(llvm::ArrayRef<unsigned> exprs) const;
  /// Returns true if node `to` depends on node `from`.
  bool reaches(unsigned from, unsigned to) const { return below[from].contains(to); }

private:
  llvm::DenseMap<unsigned, unsigned> nodeOf_;
  std::vector<int64_t> exprOf_;
  std::vector<llvm::SmallVector<unsigned, 4>> successors_;
  std::vector<ExprSet> below, above; ///< nodes that depend on each node, and those it depends on
};

} // namespace tilewright

#endif
