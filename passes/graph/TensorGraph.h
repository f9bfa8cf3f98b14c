// The tensor dependence graph of one block (Souffle 5.1): expressions in program order, the edges between them, live
// ranges, and the reuse sets s(t) of tensors that several expressions read.
#ifndef TILEWRIGHT_GRAPH_TENSORGRAPH_H
#define TILEWRIGHT_GRAPH_TENSORGRAPH_H

#include "passes/graph/TensorExpr.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir {
class Block;
}

namespace tilewright {

struct TensorEdge {
  unsigned producer, result; ///< index of an expression, and one of its results
  unsigned consumer, input;  ///< index of an expression, and one of its inputs
};

/// A tensor that several expressions read. Reuse is spatial if no reader depends on another, and temporal if one does.
struct TensorReuse {
  mlir::Value tensor;
  llvm::SmallVector<unsigned> readers;
  bool spatial, temporal;
};

/// Positions of the definition and of the last use, as expression indices; -1: defined outside; size(): used outside.
struct LiveRange {
  int64_t first, last;
};

/// An op that makes tensors but is not an expression, and the reason.
struct OpaqueOp {
  mlir::Operation *op;
  std::string reason;
};

class TensorGraph {
public:
  /// Builds the graph. Ops that describe() does not understand are opaque: edges see them only as users and producers
  /// outside the graph. A fill that only initializes accumulators is not an expression of its own.
  static TensorGraph build(mlir::Block &block);

  llvm::ArrayRef<TensorExpr> exprs() const { return exprs_; }
  /// Returns the opaque ops. Constants and ops that only pass tensors on are not among them.
  llvm::ArrayRef<OpaqueOp> opaque() const { return opaque_; }
  llvm::ArrayRef<TensorEdge> edges() const { return edges_; }
  llvm::ArrayRef<unsigned> outEdges(unsigned expr) const { return outEdges_[expr]; } ///< indices into edges()
  llvm::ArrayRef<unsigned> inEdges(unsigned expr) const { return inEdges_[expr]; }
  /// Returns the index of an op's expression, or -1.
  int64_t indexOf(mlir::Operation *op) const;
  /// Returns true if an op that is not an expression of this graph uses a result of the expression.
  bool escapes(unsigned expr) const;
  /// Returns the expression that computes a table that `expr` gathers from and that `isMember` holds for, or -1. There
  /// is no edge between the two: a table is complete in memory before a kernel that gathers from it starts.
  int64_t gathersFrom(unsigned expr, llvm::function_ref<bool(unsigned)> isMember) const;
  /// Returns true if `to` depends on `from` along any SSA path of the block, opaque ops included.
  bool dependsOn(unsigned to, unsigned from) const;

  llvm::SmallVector<TensorReuse> reuse() const;
  LiveRange liveRange(mlir::Value tensor) const;

private:
  llvm::SmallVector<TensorExpr, 0> exprs_;
  llvm::SmallVector<OpaqueOp, 0> opaque_;
  llvm::SmallVector<TensorEdge> edges_;
  llvm::SmallVector<llvm::SmallVector<unsigned>> outEdges_, inEdges_;
  llvm::DenseMap<mlir::Operation *, unsigned> index_;
  /// reach_[i] holds the expressions that i depends on.
  llvm::SmallVector<llvm::BitVector, 0> reach_;
};

} // namespace tilewright

#endif
