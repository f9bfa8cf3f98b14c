// Rewrites convolutions as contractions that read the image through its windows, for machines whose kernels read
// operands in any order.
#ifndef TILEWRIGHT_NORMALIZE_WINDOWCONTRACTION_H
#define TILEWRIGHT_NORMALIZE_WINDOWCONTRACTION_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace tilewright {

/// The order of the dims of a contraction that was a convolution.
enum class ImageOrder {
  ofModel,      ///< that of the convolution's result and weights
  channelsLast, ///< channels are the innermost dim of the result and of a window
};

/// A convolution that was rewritten.
struct WindowContraction {
  mlir::Value result;                  ///< of the convolution; null: the op was not rewritten
  mlir::tensor::ExpandShapeOp reshape; ///< of the contraction's result to points and channels; null: none
  mlir::Value channelsLast;            ///< result of the contraction, with channels last; null: of the model's order
};

/// Computes a convolution of static shape as a contraction. Leaves other ops alone: those that do not sum products over
/// input channels, such as depthwise convolutions and pools.
///
/// In the order of the model, the contraction has the layout of the convolution's result and weights; with channels
/// last, those are transposed, and so are the windows. `windows` is the order of K: with channels last, those of a point
/// of the window follow each other. Dims that are neighbours in the result are collapsed: the points
/// of an image to N if channels come first, batch and points to M if channels come last; batch dims and groups stay
/// apart. The channels and window dims that are neighbours in the weights are K. The windows are a movement (im2col)
/// that readers fold into their index.
WindowContraction rewriteAsWindowContraction(mlir::linalg::LinalgOp op, ImageOrder order, ImageOrder windows);

} // namespace tilewright

#endif
