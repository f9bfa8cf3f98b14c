// Rewrites convolutions as contractions that read the image through its windows, for machines whose kernels read
// operands in any order.
#ifndef TILEWRIGHT_NORMALIZE_WINDOWCONTRACTION_H
#define TILEWRIGHT_NORMALIZE_WINDOWCONTRACTION_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace tilewright {

/// A convolution that was rewritten.
struct WindowContraction {
  mlir::Value result;                  ///< of the convolution; null: the op was not rewritten
  mlir::tensor::ExpandShapeOp reshape; ///< of the contraction's result to that of the convolution; null: none
};

/// Computes a convolution of static shape as a contraction. Leaves other ops alone: those that do not sum products over
/// input channels, such as depthwise convolutions and pools.
///
/// The contraction has the layout of the convolution's result and weights. Dims that are neighbours in the result are
/// collapsed: the points of an image to N if channels come first, batch and points to M if channels come last; batch
/// dims and groups stay apart. The channels and window dims that are neighbours in the weights are K. The windows are a
/// movement (im2col) that readers fold into their index.
WindowContraction rewriteAsWindowContraction(mlir::linalg::LinalgOp op);

} // namespace tilewright

#endif
