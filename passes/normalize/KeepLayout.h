// Moves transposes of convolutions' results behind the ops that read them.
#ifndef TILEWRIGHT_NORMALIZE_KEEPLAYOUT_H
#define TILEWRIGHT_NORMALIZE_KEEPLAYOUT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tilewright {

/// Computes the readers of `results`, the results of contractions that were convolutions, in the layout that these
/// have: points of an image, then channels. Elementwise ops, pads, concatenations, windows and reductions over windows
/// follow that layout, up to the next convolution, which reads windows in any layout. So do reshapes of dims that lie
/// beside each other. Where an op needs the layout of the model (results of the function, other reshapes), the tensor is
/// transposed in front of it. Ops with dynamic shapes and bodies that ask for their position end the layout, too.
void keepLayout(mlir::func::FuncOp function, llvm::ArrayRef<mlir::Value> results);

} // namespace tilewright

#endif
