// Winograd's minimal filtering: convolutions with 3x3 windows by fewer products.
#ifndef TILEWRIGHT_NORMALIZE_WINOGRAD_H
#define TILEWRIGHT_NORMALIZE_WINOGRAD_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tilewright {

/// A convolution that was rewritten.
struct WinogradConvolution {
  mlir::Value result;       ///< of the convolution
  mlir::Value channelsLast; ///< the same without the convolution's start: batch, points, then channels
};

/// Returns true for a convolution in f32 of static shape with 3x3 windows, without strides, dilations and groups, whose
/// weights are parameters or constants.
bool isWinogradOffered(mlir::linalg::LinalgOp op);

/// Returns how many lines of tiles the sums of such a convolution may be stored for: for each divisor of those of an
/// image, and for all lines of all images, the largest number.
llvm::SmallVector<int64_t> winogradLines(mlir::linalg::LinalgOp op);

/// Gives a convolution the form, with sums of so many lines together, in which `tile-convolution-to-matmul` rewrites
/// it.
void requestWinograd(mlir::Operation *convolution, int64_t lines);
/// Gives it back the form of a contraction with windows and channels last.
void declineWinograd(mlir::Operation *convolution);

/// Computes such a convolution by F(2x2, 3x3) of Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks":
/// tiles of 4x4 points, which overlap, become 16 sums of their points, each of which is multiplied with as many sums of
/// weights over all channels, and 2x2 results are sums of these 16 products. That takes 16 products for each channel
/// and four results in place of 36.
///
/// Both sums are contractions with a small constant matrix, the products are a batch of 16 contractions, and the sums
/// of weights are computed at compile time or at load. All are ordinary ops, which the planner tiles and fuses.
///
/// `lines` is one of `winogradLines`: sums of so many lines of tiles lie together, and a batch of 16 contractions has
/// their tiles as rows. With few lines, the sums stay in the cache; with many, weights are read less often.
WinogradConvolution rewriteAsWinograd(mlir::linalg::LinalgOp op, int64_t lines);

} // namespace tilewright

#endif
