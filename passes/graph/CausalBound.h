// Finds the points of a maximum's rows that count at all. Masks push the others so far down that their exponentials,
// relative to the maximum, are zero. The analysis reads the arithmetic of the mask, a comparison of indices that
// selects or adds a very low number, whatever operators it is spread over. With it, causal attention reads no keys
// beyond a row's own position.
#ifndef TILEWRIGHT_GRAPH_CAUSALBOUND_H
#define TILEWRIGHT_GRAPH_CAUSALBOUND_H

#include "passes/graph/TensorGraph.h"

namespace tilewright {

/// Returns the end of the points that count along the dim that the maximum `expr` reduces, as a linear function of its
/// other dims, or nothing if all points may count. From that end on, the operand is either -infinity or so low that
/// only a row without any counting point could notice it; in the latter case every row is known to have such a point.
/// Masked values are assumed to be lower than any score, and scores to be below 2^98.
std::optional<mlir::AffineExpr> endOfCounted(const TensorGraph &graph, unsigned expr);

/// Returns the largest value of a linear expression over boxes of its dims.
int64_t largestOver(mlir::AffineExpr linear, llvm::ArrayRef<int64_t> low, llvm::ArrayRef<int64_t> high);

/// Returns how much a linear expression grows per step along a dim.
int64_t slopeAlong(mlir::AffineExpr linear, unsigned dim, unsigned numDims);

} // namespace tilewright

#endif
