// The space that all searches over one problem share: the expressions that they group, their dependences and the
// costs.
#ifndef TILEWRIGHT_PLAN_SEARCH_SEARCHSPACE_H
#define TILEWRIGHT_PLAN_SEARCH_SEARCHSPACE_H

#include "passes/plan/search/Dependences.h"
#include "passes/plan/search/GroupCosts.h"

namespace tilewright {

class SearchSpace {
public:
  /// `exprs` are the expressions that Tilewright may compute, in program order. The partition must have each op in a
  /// group of its own.
  SearchSpace(const GroupProblem &problem, const Partition &partition, llvm::ArrayRef<unsigned> exprs,
              std::function<bool(unsigned)> keepsApart);
  SearchSpace(const SearchSpace &) = delete;
  SearchSpace &operator=(const SearchSpace &) = delete;

  const TensorGraph &graph;
  const Target &target;
  const llvm::SmallVector<unsigned> exprs; ///< in program order
  const Dependences dependences;
  GroupCosts costs;

  bool has(unsigned expr) const { return members.contains(expr); }
  const CostedGroup &groupOf(llvm::ArrayRef<unsigned> group) { return costs.of(ExprSet(graph.exprs().size(), group)); }
  const CostedGroup &alone(unsigned expr) { return groupOf({expr}); }

  /// Returns the expressions that read results of one, or whose results it reads.
  llvm::ArrayRef<unsigned> readersOf(unsigned expr) const { return readers[expr]; }
  llvm::ArrayRef<unsigned> producersOf(unsigned expr) const { return producers[expr]; }
  /// Returns the expressions that read a tensor that this one reads as well (Souffle 5.1: spatial reuse). A tensor with
  /// many readers makes neighbours in program order siblings only.
  llvm::ArrayRef<unsigned> siblingsOf(unsigned expr) const { return siblings[expr]; }

private:
  ExprSet members;
  std::vector<llvm::SmallVector<unsigned, 4>> readers, producers, siblings; ///< by expression
};

} // namespace tilewright

#endif
