// Turns gathers that repeat the points of a tensor into movement.
#ifndef TILEWRIGHT_NORMALIZE_REPEATEDEXTRACTS_H
#define TILEWRIGHT_NORMALIZE_REPEATEDEXTRACTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tilewright {

/// Makes operands of the tensors from which bodies of linalg.generic extract elements at i floordiv r, for points i of
/// one loop and any number r of repetitions, as in nearest resizing by whole factors. The points are repeated by a
/// broadcast and a reshape. Leaves other ops alone.
void readRepeatedExtracts(mlir::func::FuncOp function);

} // namespace tilewright

#endif
