// One reduction for two that follow one another. Front ends reduce dim by dim where their source reduces several.
#ifndef TILEWRIGHT_NORMALIZE_MERGEREDUCTIONS_H
#define TILEWRIGHT_NORMALIZE_MERGEREDUCTIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tilewright {

/// Has a maximum of maxima read what these were of, and so with minima, `and` and `or`, whose results are the same in
/// whatever order, and however often an element takes part.
void mergeReductions(mlir::func::FuncOp function);

} // namespace tilewright

#endif
