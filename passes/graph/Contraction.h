// Contractions that a register block can compute: sums of products in which one operand (lhs) does not depend on N
// and the other (rhs) is contiguous along N, whose elements fill vector lanes. Only the maps are read, so that planning
// can ask before and after maps are composed. The reduced dims are K.
#ifndef TILEWRIGHT_GRAPH_CONTRACTION_H
#define TILEWRIGHT_GRAPH_CONTRACTION_H

#include "passes/graph/TensorExpr.h"
#include "passes/target/ProductTypes.h"
#include <optional>
#include <string>

namespace tilewright {

/// The roles of a contraction's dims and inputs.
struct ContractionRoles {
  unsigned lhsInput, rhsInput; ///< lhs, which does not depend on N; rhs, which does
  int64_t m = -1;              ///< the longest dim of lhs and the result alone; -1: vector times matrix
  int64_t n;                   ///< the innermost dim of the result
};

/// The op acc + first * second in a body, whose operands are those before they are widened.
struct SumOfProducts {
  mlir::Operation *sum, *product;
  mlir::Value operands[2];
  mlir::Operation *widening[2]; ///< null: already of the accumulator's type
  std::string types[2], sumType;

  ProductTypes productTypes(unsigned lhs) const { return {types[lhs], types[1 - lhs], sumType}; }
};

/// Matches a yielded sum of products of types that a micro kernel can have. `reason` explains a failure.
std::optional<SumOfProducts> matchSumOfProducts(mlir::Value yielded, mlir::Value accumulator,
                                                std::string *reason = nullptr);

/// Returns true if the body of an op with two inputs adds the product of their elements, as they are, to its
/// accumulator.
bool addsPlainProducts(mlir::Block &body);

/// Returns why the body is not a sum of products whose accumulator keeps its precision, or an empty string.
std::string whyNoSumOfProducts(const TensorExpr &expr);

/// Returns the roles, if exactly one input varies along the innermost dim of the result. `first` and `second` are the
/// maps of the two inputs over the domain, possibly composed with movement.
std::optional<ContractionRoles> contractionRoles(const TensorExpr &expr, mlir::AffineMap first, mlir::AffineMap second);

/// Returns the types of a contraction that a register block can compute.
ProductTypes productTypes(const TensorExpr &expr, const ContractionRoles &roles);

/// The part of K that is contiguous, innermost of all, in a packed rhs.
struct PackedK {
  int64_t dim; ///< the reduced dim; -1: every reduced dim has one point
  int64_t depth;
};

/// Returns how an operand of `shape`, read at `rhs`, is packed along K, or nothing if N is innermost.
std::optional<PackedK> packedK(mlir::AffineMap rhs, llvm::ArrayRef<int64_t> shape, int64_t n,
                               llvm::ArrayRef<int64_t> extents, llvm::function_ref<bool(int64_t dim)> isReduced);

} // namespace tilewright

#endif
