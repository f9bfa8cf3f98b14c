// Merges a reduction with one that reads its result. Front ends reduce one dim after another where their source reduces
// several at once.
#ifndef TILEWRIGHT_NORMALIZE_MERGEREDUCTIONS_H
#define TILEWRIGHT_NORMALIZE_MERGEREDUCTIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tilewright {

/// Replaces a maximum of maxima by one maximum over both dims, and likewise minima, `and` and `or`. These are exact in
/// any order, and however often an element is counted.
void mergeReductions(mlir::func::FuncOp function);

} // namespace tilewright

#endif
