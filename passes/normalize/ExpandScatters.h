// Scatters of few updates as reductions over the updates, which fuse with what surrounds them.
#ifndef TILEWRIGHT_NORMALIZE_EXPANDSCATTERS_H
#define TILEWRIGHT_NORMALIZE_EXPANDSCATTERS_H

#include "passes/target/CostParameters.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tilewright {

/// Replaces scatters (iree_linalg_ext.scatter) of known sizes: each element looks for the updates that hit it. Without a
/// reduction it takes the last one, and otherwise it is combined with all of them. Updates outside of the tensor are
/// dropped.
///
/// Scatters of many updates into large tensors are left alone, and so are those into an argument without a
/// reduction, which IREE stores in place (docs/guide/state.md), unless places and updates are constants.
void expandScatters(mlir::func::FuncOp function, const CommonCosts &costs);

} // namespace tilewright

#endif
