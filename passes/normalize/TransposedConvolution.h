// Rewrites transposed convolutions without the zeros between the points of their image.
#ifndef TILEWRIGHT_NORMALIZE_TRANSPOSEDCONVOLUTION_H
#define TILEWRIGHT_NORMALIZE_TRANSPOSEDCONVOLUTION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tilewright {

/// Front ends spell a transposed convolution as a convolution with flipped weights over an image with zeros between its
/// points. The points of the image that a window covers are the same for as many neighbouring results as the stride, each
/// of which multiplies them with other weights. Computes these results as further filters of one convolution without
/// those zeros, and moves them to their places. Returns the tensors of all results, channels last.
llvm::SmallVector<mlir::Value> rewriteTransposedConvolutions(mlir::func::FuncOp function);

} // namespace tilewright

#endif
