// A partition of a block's ops into groups, one per kernel. Kernels can be launched one after another exactly if the
// graph contracted to groups has no cycle; order() then returns the sequence of the kernels and of the ops left alone.
// Ops whose effects are unknown (unregistered ones included) keep their order among themselves.
#ifndef TILEWRIGHT_PLAN_IR_PARTITION_H
#define TILEWRIGHT_PLAN_IR_PARTITION_H

#include "passes/graph/TensorGraph.h"
#include "llvm/ADT/BitVector.h"

namespace tilewright {

class Partition {
public:
  /// Starts with each op in a group of its own.
  Partition(const TensorGraph &graph, mlir::Block &block);

  /// Returns a partition of the same ops with each in a group of its own.
  Partition ungrouped() const;

  unsigned groupOf(unsigned expr) const { return group[opOf_[expr]]; }
  size_t numOps() const { return ops.size(); }
  /// Returns the number of the expression's op in the block.
  unsigned opOf(unsigned expr) const { return opOf_[expr]; }
  /// Returns the numbers of the ops that depend on an op directly, or must follow it because of their effects.
  llvm::ArrayRef<unsigned> dependents(unsigned op) const { return successors[op]; }
  /// Returns true if the contracted graph stays acyclic when the two groups become one: no path between them passes
  /// through a third group, and neither holds an expression that is kept apart. Requires that the graph is acyclic now.
  bool canMerge(unsigned a, unsigned b) const;
  /// Forbids that the expression shares a group with others.
  void keepApart(unsigned expr) { apart[opOf_[expr]] = true; }
  bool isApart(unsigned expr) const { return apart[opOf_[expr]]; }
  /// Returns true if some op of group `to` depends on an op of group `from`.
  bool reaches(unsigned from, unsigned to) const;
  /// Puts the expressions, with all ops of their groups, into one group, whether or not that makes a cycle.
  void join(llvm::ArrayRef<unsigned> exprs);
  /// Merges two groups and returns the merged group.
  unsigned merge(unsigned a, unsigned b);

  /// Returns the groups in an order that respects all dependences and is as close to program order as possible, each
  /// with its ops in program order. Returns nothing if there is a cycle.
  std::optional<std::vector<std::vector<mlir::Operation *>>> order() const;

private:
  /// Ops that are connected with each op.
  using Edges = std::vector<std::vector<unsigned>>;
  /// Sorted: no path leads from a group to one at a smaller position. Stale: the positions are to be found anew.
  /// Cyclic: there are no such positions.
  enum class Ordering { Sorted, Stale, Cyclic };

  /// Gives each op a group of its own.
  void separate();
  /// Calls `visit` with the other groups that the edges of a group's ops lead to, once for each edge.
  template <typename Visit>
  void visitNeighbours(unsigned name, const Edges &edges, Visit visit) const;
  /// Finds the positions of all groups.
  void sort() const;
  /// Returns true if a path leads from `from` to `to`; if `indirectly`, it must pass through another group.
  bool search(unsigned from, unsigned to, bool indirectly) const;
  /// Returns the groups that edges lead to from a group through positions above `least` and below `most`, by position.
  std::vector<unsigned> between(unsigned from, const Edges &edges, unsigned least, unsigned most) const;
  /// Moves the ops of `b` into `a`.
  void unite(unsigned a, unsigned b);
  /// Gives a position to group `a` with the ops of `b`, and moves those between the two that must be before or behind.
  void placeMerged(unsigned a, unsigned b);

  std::vector<mlir::Operation *> ops;
  std::vector<unsigned> opOf_;                ///< op of each expression
  std::vector<unsigned> group;                ///< group of each op, named by one of its ops
  std::vector<std::vector<unsigned>> members; ///< ops of each group; empty for names not in use
  Edges successors;                           ///< ops that depend on each op
  Edges predecessors;                         ///< ops that each op depends on
  std::vector<bool> apart;                    ///< true for ops that share no group
  mutable std::vector<unsigned> position;     ///< position of each group
  mutable Ordering ordering = Ordering::Sorted;
};

} // namespace tilewright

#endif
