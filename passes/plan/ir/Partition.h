// The ops of a block contracted into groups, one per kernel. A partition can be carried out exactly when the contracted
// graph has no cycle; then order() is the sequence in which kernels and the ops left alone are placed. Ops whose
// effects we cannot see (unregistered ones included) keep their order among themselves.
#ifndef TILEWRIGHT_PLAN_IR_PARTITION_H
#define TILEWRIGHT_PLAN_IR_PARTITION_H

#include "passes/graph/TensorGraph.h"
#include "llvm/ADT/BitVector.h"

namespace tilewright {

class Partition {
public:
  /// Every op is a group of its own.
  Partition(const TensorGraph &graph, mlir::Block &block);

  unsigned groupOf(unsigned expr) const { return group[opOf[expr]]; }
  /// Whether the contracted graph stays acyclic when the two groups become one: no path between them passes through a
  /// third group, and neither is kept apart. Requires that it is acyclic now.
  bool canMerge(unsigned a, unsigned b) const;
  /// Lets the expression share no group with others.
  void keepApart(unsigned expr) { apart[opOf[expr]] = true; }
  bool isApart(unsigned expr) const { return apart[opOf[expr]]; }
  /// Whether some op of group `to` depends on one of `from`.
  bool reaches(unsigned from, unsigned to) const;
  /// Makes one group of two and returns it.
  unsigned merge(unsigned a, unsigned b);

  /// The groups in an order that respects all dependences, each with its ops in program order, as close to program
  /// order as the groups allow; nothing when there is a cycle.
  std::optional<std::vector<std::vector<mlir::Operation *>>> order() const;

private:
  /// Whether `to` is reached from `from`, through at least one other group if `indirectly`.
  bool search(unsigned from, unsigned to, bool indirectly) const;

  std::vector<mlir::Operation *> ops;
  std::vector<unsigned> opOf;                    ///< op of an expression
  std::vector<unsigned> group;                   ///< group of an op, named by one of its ops
  std::vector<std::vector<unsigned>> members;    ///< ops of a group; empty for names not in use
  std::vector<std::vector<unsigned>> successors; ///< of an op
  std::vector<bool> apart;                       ///< by op
};

} // namespace tilewright

#endif
