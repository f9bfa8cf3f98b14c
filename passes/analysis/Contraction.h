// Contractions that a register block can compute: sums of products whose row operand is one number for all lanes and
// whose lane operand lies along them. Read off maps alone, so that planning can ask before and after maps are composed.
#ifndef TILEWRIGHT_ANALYSIS_CONTRACTION_H
#define TILEWRIGHT_ANALYSIS_CONTRACTION_H

#include "passes/analysis/TensorExpr.h"
#include <optional>
#include <string>

namespace tilewright {

/// The roles of a contraction's dims and inputs.
struct ContractionRoles {
  unsigned rowInput, laneInput; ///< the input that is the same for all lanes, and the one that changes along them
  int64_t row = -1;             ///< the longest dim of the row input and the result alone; -1: vector times matrix
  int64_t lane;                 ///< the innermost dim of the result
};

/// Why the body is no sum of products with an accumulator that keeps its precision, or nothing.
std::string whyNoSumOfProducts(const TensorExpr &expr);

/// The roles, where exactly one input changes along the innermost dim of the result. `maps` are those of the two inputs
/// over the domain, which may have been composed with movement.
std::optional<ContractionRoles> contractionRoles(const TensorExpr &expr, mlir::AffineMap first, mlir::AffineMap second);

} // namespace tilewright

#endif
