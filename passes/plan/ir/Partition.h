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
  /// Merges two groups and returns the merged group.
  unsigned merge(unsigned a, unsigned b);

  /// Returns the groups in an order that respects all dependences and is as close to program order as possible, each
  /// with its ops in program order. Returns nothing if there is a cycle.
  std::optional<std::vector<std::vector<mlir::Operation *>>> order() const;

private:
  /// Gives each op a group of its own.
  void separate();
  /// Returns true if a path leads from `from` to `to`; if `indirectly`, it must pass through another group.
  bool search(unsigned from, unsigned to, bool indirectly) const;
  /// Returns the first op of the interval of program order in which an op lies. No group has ops in two intervals, so
  /// no path leads from an interval to an earlier one.
  unsigned intervalOf(unsigned op) const;

  std::vector<mlir::Operation *> ops;
  std::vector<unsigned> opOf_;                   ///< op of each expression
  std::vector<unsigned> group;                   ///< group of each op, named by one of its ops
  std::vector<std::vector<unsigned>> members;    ///< ops of each group; empty for names not in use
  std::vector<std::vector<unsigned>> successors; ///< ops that depend on each op
  std::vector<bool> apart;                       ///< true for ops that share no group
  mutable std::vector<unsigned> earlier; ///< an op of the same interval that is earlier, or the op itself if it is first
};

} // namespace tilewright

#endif
