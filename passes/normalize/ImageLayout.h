// Predicts the layout of images around a convolution, before keepLayout() gives it to them.
#ifndef TILEWRIGHT_NORMALIZE_IMAGELAYOUT_H
#define TILEWRIGHT_NORMALIZE_IMAGELAYOUT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tilewright {

/// Returns true if an image is expected to have its channels innermost: it comes from one of `results`, the results of
/// contractions that were convolutions, through ops that keep its layout (KeepLayout.h). A wrong answer costs time only.
bool hasChannelsLast(mlir::Value image, llvm::ArrayRef<mlir::Value> results);

/// Returns true for a convolution with windows of one point whose image and result stay in the layout of the model, with
/// channels first: it is the matmul of weights and image, which transposes neither of the two. `results` are those of
/// earlier convolutions.
bool isAloneInLayout(mlir::linalg::LinalgOp op, llvm::ArrayRef<mlir::Value> results);

/// Returns true if a convolution reads an image from one of `results`, those of other convolutions, or if a convolution
/// or a pool reads its result, possibly through ops that keep the layout.
bool joinsConvolutions(mlir::linalg::LinalgOp op, llvm::ArrayRef<mlir::Value> results);

/// Returns true if a convolution of the function that sums over channels reads the result of another one.
bool hasJoinedConvolutions(mlir::func::FuncOp function);

} // namespace tilewright

#endif
