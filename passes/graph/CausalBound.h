// Which points of a maximum's rows count at all: masks push the others so far down that their exponentials, relative
// to the maximum, are zero. Seen from the arithmetic of the mask, a comparison of indices that chooses a very low
// number or adds one, whatever operators it is spread over. Causal attention needs no keys beyond a row's own.
#ifndef TILEWRIGHT_GRAPH_CAUSALBOUND_H
#define TILEWRIGHT_GRAPH_CAUSALBOUND_H

#include "passes/graph/TensorGraph.h"

namespace tilewright {

/// The end of the points that count along the dim that the maximum `expr` reduces, a linear function of its other
/// dims; nothing where all may count. From there on its operand is either -infinity or so low a number that only a row
/// without a point that counts could see it; in the latter case every row is known to have one. What is masked is taken
/// to be lower than any score: those are below 2^98.
std::optional<mlir::AffineExpr> endOfCounted(const TensorGraph &graph, unsigned expr);

/// The largest value of a linear expression over boxes of its dims.
int64_t largestOver(mlir::AffineExpr linear, llvm::ArrayRef<int64_t> low, llvm::ArrayRef<int64_t> high);

/// What a linear expression grows by along a dim.
int64_t slopeAlong(mlir::AffineExpr linear, unsigned dim, unsigned numDims);

} // namespace tilewright

#endif
