// Predicts the layout of images around a convolution, before keepLayout() gives it to them.
#ifndef TILEWRIGHT_NORMALIZE_IMAGELAYOUT_H
#define TILEWRIGHT_NORMALIZE_IMAGELAYOUT_H

#include "passes/target/CostParameters.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tilewright {

/// Returns true if an image is expected to have its channels innermost: it comes from one of `results`, the results of
/// contractions that were convolutions, through ops that keep its layout (KeepLayout.h). A wrong answer costs time only.
bool hasChannelsLast(mlir::Value image, llvm::ArrayRef<mlir::Value> results);

/// Returns true for a convolution with windows of one point that is the matmul of weights and image with channels first
/// and has points enough for lanes. It transposes neither of the two. With a stride, the image is a slice (see
/// withoutStride()).
bool isMatmulOfImage(mlir::linalg::LinalgOp op, const CpuCosts &costs);

/// Returns a convolution for which isMatmulOfImage() holds as one without stride: a copy that reads a slice of the image,
/// the points where windows are. Without a stride, returns the op itself.
mlir::linalg::LinalgOp withoutStride(mlir::linalg::LinalgOp op);

/// Returns true if an op computes from images what lies as they do, if it is no contraction.
bool keepsAnyLayout(mlir::Operation *op);

/// Returns true for a convolution of static shape that sums over channels.
bool sumsOverChannels(mlir::linalg::LinalgOp op);

/// Returns true if a convolution reads an image from one of `results`, those of other convolutions, or if a convolution
/// or a pool reads its result, possibly through ops that keep the layout.
bool joinsConvolutions(mlir::linalg::LinalgOp op, llvm::ArrayRef<mlir::Value> results);

} // namespace tilewright

#endif
