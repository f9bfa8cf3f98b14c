// The tensor dependence graph of one block (Souffle 5.1): expressions in program order, the edges between them, live
// ranges, and the reuse sets s(t) of tensors that more than one expression reads.
#ifndef TILEWRIGHT_GRAPH_TENSORGRAPH_H
#define TILEWRIGHT_GRAPH_TENSORGRAPH_H

#include "passes/graph/TensorExpr.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir {
class Block;
}

namespace tilewright {

struct TensorEdge {
  unsigned producer, result; ///< expression index and its result
  unsigned consumer, input;  ///< expression index and its input
};

/// A tensor read by several expressions: spatial reuse when no reader depends on another, temporal when one does.
struct TensorReuse {
  mlir::Value tensor;
  llvm::SmallVector<unsigned> readers;
  bool spatial, temporal;
};

/// Positions of definition and last use, in expression indices; -1: defined outside; size(): used outside.
struct LiveRange {
  int64_t first, last;
};

/// An op that makes tensors and is no expression, and why.
struct OpaqueOp {
  mlir::Operation *op;
  std::string reason;
};

class TensorGraph {
public:
  /// Ops that describe() does not understand are opaque: in edges they are only users and producers outside the graph.
  /// A fill that only starts accumulators is no expression of its own.
  static TensorGraph build(mlir::Block &block);

  llvm::ArrayRef<TensorExpr> exprs() const { return exprs_; }
  /// Constants, and what only hands tensors on, are not among them.
  llvm::ArrayRef<OpaqueOp> opaque() const { return opaque_; }
  llvm::ArrayRef<TensorEdge> edges() const { return edges_; }
  llvm::ArrayRef<unsigned> outEdges(unsigned expr) const { return outEdges_[expr]; } ///< indices into edges()
  llvm::ArrayRef<unsigned> inEdges(unsigned expr) const { return inEdges_[expr]; }
  /// The expression of an op, or -1.
  int64_t indexOf(mlir::Operation *op) const;
  /// Whether some result of the expression is used by an op that is no expression of this graph.
  bool escapes(unsigned expr) const;
  /// Whether `to` depends on `from` along any SSA path of the block, opaque ops included.
  bool dependsOn(unsigned to, unsigned from) const;

  llvm::SmallVector<TensorReuse> reuse() const;
  LiveRange liveRange(mlir::Value tensor) const;

private:
  llvm::SmallVector<TensorExpr, 0> exprs_;
  llvm::SmallVector<OpaqueOp, 0> opaque_;
  llvm::SmallVector<TensorEdge> edges_;
  llvm::SmallVector<llvm::SmallVector<unsigned>> outEdges_, inEdges_;
  llvm::DenseMap<mlir::Operation *, unsigned> index_;
  /// reach_[i] holds the expressions i depends on.
  llvm::SmallVector<llvm::SmallVector<bool>> reach_;
};

} // namespace tilewright

#endif
