// Rewrites transposed convolutions whose windows do not overlap.
#ifndef TILEWRIGHT_NORMALIZE_TRANSPOSEDCONVOLUTION_H
#define TILEWRIGHT_NORMALIZE_TRANSPOSEDCONVOLUTION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tilewright {

/// Front ends spell a transposed convolution as a convolution with flipped weights over an image with zeros between its
/// points. If the stride is the size of the window, each point of the result has one product per channel that is not
/// with such a zero. Computes these convolutions by a convolution with windows of one point and as many times the
/// filters as a window has points, whose results are then moved to their places. Returns the tensors of these results,
/// channels last.
llvm::SmallVector<mlir::Value> rewriteTransposedConvolutions(mlir::func::FuncOp function);

} // namespace tilewright

#endif
