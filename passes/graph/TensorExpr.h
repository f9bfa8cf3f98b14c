// One tensor expression (Souffle section 3), read from an op: its domain and the quasi-affine accesses to its inputs.
// Structured ops, reshapes, slices, pads and concats all become the same struct, which the analyses, the planner and
// the raising to tile.expr share.
#ifndef TILEWRIGHT_GRAPH_TENSOREXPR_H
#define TILEWRIGHT_GRAPH_TENSOREXPR_H

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/IntegerSet.h"
#include "mlir/IR/Operation.h"

namespace tilewright {

/// The element of `tensor` that a point of the domain reads. Points where the guard (null: everywhere) does not hold
/// read nothing.
struct TensorAccess {
  mlir::Value tensor;
  mlir::AffineMap map;
  mlir::IntegerSet guard;
  unsigned operand = 0; ///< number of the op's operand; kGathered if the body names the tensor itself
  /// The body computes some of the coordinates, so it may read any element along those dims. The map is zero there.
  bool gathered = false;
};

/// The operand number of a tensor that a body reads without an operand (tensor.extract).
inline constexpr unsigned kGathered = ~0u;

enum class ExprKind {
  movement,    ///< copies elements unchanged: reshape, transpose, slice, pad, concat, broadcast, fill
  elementwise, ///< arithmetic, one-relies-on-one
  reduction,   ///< one-relies-on-many with one full-domain operand
  contraction, ///< one-relies-on-many over a product of operands: matmul, conv
};
llvm::StringRef stringify(ExprKind kind);

struct TensorExpr {
  mlir::Operation *op = nullptr;
  ExprKind kind = ExprKind::elementwise;
  llvm::SmallVector<int64_t> domain;          ///< extent per dim
  llvm::SmallVector<int64_t> reductions;      ///< reduced dims
  llvm::SmallVector<TensorAccess> inputs;     ///< tensor operands that are read; empty and fill inits are not
  llvm::SmallVector<mlir::AffineMap> results; ///< index per result, a projected permutation of the domain

  bool oneReliesOnOne() const { return reductions.empty(); }
  /// Returns the block that computes an element; null if elements only move.
  mlir::Block *body() const;
  /// Returns the point of the domain that an element of a result belongs to; dims that the element does not determine
  /// are zero.
  mlir::AffineMap pointOf(unsigned result) const;
  int64_t domainSize() const;
  /// Returns the arithmetic operations of the body over the whole domain. Constants, index casts and yields are free.
  int64_t arithmetic() const;
};

/// Returns the value of a scalar constant, or of every element of a tensor that is a splat constant or filled with a
/// constant; null for everything else.
mlir::TypedAttr constantElement(mlir::Value value);

/// Returns the tensor expression of `op`, or failure with the reason: not a structured op, dynamic shape, ... The
/// function changes nothing. It understands linalg ops,
/// tensor.expand_shape/collapse_shape/extract_slice/insert_slice/pad/concat and tile.expr.
mlir::FailureOr<TensorExpr> describe(mlir::Operation *op, std::string *reason = nullptr);

} // namespace tilewright

#endif
