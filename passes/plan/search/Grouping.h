// A state of a search: a partition of the expressions into fusion groups that can run one after another. Moves that
// keep it legal are the only ones there are.
#ifndef TILEWRIGHT_PLAN_SEARCH_GROUPING_H
#define TILEWRIGHT_PLAN_SEARCH_GROUPING_H

#include "passes/plan/search/SearchSpace.h"

namespace tilewright {

/// Copies are cheap: two numbers and an address per expression.
class Grouping {
public:
  /// Starts with each expression in a group of its own.
  explicit Grouping(SearchSpace &space);

  /// A group is named by the node of its first expression.
  unsigned nameOf(unsigned expr) const { return first[space->dependences.nodeOf(expr)]; }
  const CostedGroup &group(unsigned name) const { return *groups[name]; }
  bool has(unsigned name) const { return groups[name] != nullptr; }
  /// Returns the names of all groups, in an order in which they can run.
  llvm::SmallVector<unsigned> inOrder() const;
  /// Returns the predicted seconds of all groups, with `perKernel` seconds added for each.
  double seconds(double perKernel = 0) const { return total + perKernel * static_cast<double>(kernels); }
  bool operator==(const Grouping &other) const { return groups == other.groups; }

  /// Returns true if groups still can run one after another when these become one.
  bool canMerge(llvm::ArrayRef<unsigned> names) const;
  /// Returns the group that merging these would make. It may be impossible.
  const CostedGroup &merged(llvm::ArrayRef<unsigned> names) const;
  /// Merges groups that canMerge() allows, and returns the name of the new group.
  unsigned merge(llvm::ArrayRef<unsigned> names);
  /// Merges groups if that is possible.
  bool tryMerge(llvm::ArrayRef<unsigned> names);
  /// Replaces a group by these pieces of it. Edges between pieces must lead from earlier to later ones.
  void split(unsigned name, llvm::ArrayRef<const CostedGroup *> pieces);

  /// Returns the names of groups that read results of a group, produce what it reads, or read a tensor in common.
  llvm::SmallVector<unsigned> neighboursOf(unsigned name) const;
  llvm::SmallVector<unsigned> readersOf(unsigned name) const;
  llvm::SmallVector<unsigned> producersOf(unsigned name) const;

  SearchSpace &searched() const { return *space; }

private:
  /// Returns the nodes of a group; other ops are groups of their own.
  llvm::SmallVector<unsigned> nodesOf(unsigned name) const;
  void place(const CostedGroup &group);
  void remove(unsigned name);
  void findPositions() const;

  SearchSpace *space;
  std::vector<unsigned> first;              ///< by node: the name of its group
  std::vector<const CostedGroup *> groups;  ///< by name; null if there is none, or for other ops
  mutable std::vector<unsigned> positions;  ///< by name: place in a topological order
  mutable bool havePositions = false;
  double total = 0;
  int64_t kernels = 0; ///< groups that are not only reshapes
};

} // namespace tilewright

#endif
