// Elementwise ops with several results as one op for each result.
#ifndef TILEWRIGHT_NORMALIZE_SPLITRESULTS_H
#define TILEWRIGHT_NORMALIZE_SPLITRESULTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tilewright {

/// Splits ops with several results of different types, none of which is read while it is computed. The planner puts them
/// into one kernel again. IREE mixes up the sizes of such results, where they are left to it.
void splitResults(mlir::func::FuncOp function);

} // namespace tilewright

#endif
