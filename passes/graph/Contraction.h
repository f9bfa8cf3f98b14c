// Contractions that a register block can compute: sums of products whose row operand is one number for all lanes and
// whose lane operand lies along them. Read off maps alone, so that planning can ask before and after maps are composed.
#ifndef TILEWRIGHT_GRAPH_CONTRACTION_H
#define TILEWRIGHT_GRAPH_CONTRACTION_H

#include "passes/graph/TensorExpr.h"
#include "passes/target/ProductTypes.h"
#include <optional>
#include <string>

namespace tilewright {

/// The roles of a contraction's dims and inputs.
struct ContractionRoles {
  unsigned rowInput, laneInput; ///< the input that is the same for all lanes, and the one that changes along them
  int64_t row = -1;             ///< the longest dim of the row input and the result alone; -1: vector times matrix
  int64_t lane;                 ///< the innermost dim of the result
};

/// accumulator + first * second in a body, with the factors before they were widened.
struct SumOfProducts {
  mlir::Operation *sum, *product;
  mlir::Value factors[2];
  mlir::Operation *widening[2]; ///< null: of the type of the sum
  std::string types[2], sumType;

  ProductTypes productTypes(unsigned rowFactor) const { return {types[rowFactor], types[1 - rowFactor], sumType}; }
};

/// The sum of products that is yielded, if it is one of a micro kernel's types.
std::optional<SumOfProducts> matchSumOfProducts(mlir::Value yielded, mlir::Value accumulator,
                                                std::string *reason = nullptr);

/// Why the body is no sum of products with an accumulator that keeps its precision, or nothing.
std::string whyNoSumOfProducts(const TensorExpr &expr);

/// The roles, where exactly one input changes along the innermost dim of the result. `maps` are those of the two inputs
/// over the domain, which may have been composed with movement.
std::optional<ContractionRoles> contractionRoles(const TensorExpr &expr, mlir::AffineMap first, mlir::AffineMap second);

/// What it multiplies and sums, of a contraction that a register block can compute.
ProductTypes productTypes(const TensorExpr &expr, const ContractionRoles &roles);

/// Terms of a sum that lie side by side in a packed lane operand, innermost of all.
struct PackedK {
  int64_t dim; ///< the reduced dim; -1: all of them have one point
  int64_t depth;
};

/// How an operand of `shape`, read at `lanes`, is packed in terms; nothing if its lanes lie innermost.
std::optional<PackedK> packedK(mlir::AffineMap lanes, llvm::ArrayRef<int64_t> shape, int64_t lane,
                                       llvm::ArrayRef<int64_t> extents,
                                       llvm::function_ref<bool(int64_t dim)> isReduced);

} // namespace tilewright

#endif
