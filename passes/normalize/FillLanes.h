// What fills the lanes of a contraction, and the same contraction where something else would fill them better.
#ifndef TILEWRIGHT_NORMALIZE_FILLLANES_H
#define TILEWRIGHT_NORMALIZE_FILLLANES_H

#include "passes/graph/TensorGraph.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tilewright {

enum class AlongLanes { much, few, nothing };

/// Nothing, where the contraction has both factors, or none, along the innermost dim of its result; or multiplies a
/// vector with a matrix that lies the other way, and that nobody lays out at compile time. Few, where that dim has two
/// or three elements and a row many terms.
AlongLanes whatLiesAlongLanes(const TensorGraph &graph, const std::vector<bool> &atLoad, unsigned id);

/// The dim of the result that would fill lanes if it were the innermost: one factor has it, and where several are such,
/// has it innermost. Nothing: there are no rows beside it, or what the sums start from lies as they do.
std::optional<unsigned> lanesElsewhere(mlir::linalg::LinalgOp op);

/// The same contraction, whose operands lie along the terms: vectors of them are read as they are.
mlir::linalg::LinalgOp alongK(mlir::linalg::LinalgOp op);

/// The same contraction with the dim innermost in its result, which is turned back behind it.
void turnResult(mlir::linalg::LinalgOp op, unsigned lane);

} // namespace tilewright

#endif
