// The values that accumulators start from.
#ifndef TILEWRIGHT_GRAPH_STARTVALUE_H
#define TILEWRIGHT_GRAPH_STARTVALUE_H

#include "mlir/IR/Operation.h"

namespace tilewright {

/// Returns true if the first result of a linalg op or tile.expr starts from zero everywhere.
bool startsFromZero(mlir::Operation *op);

} // namespace tilewright

#endif
