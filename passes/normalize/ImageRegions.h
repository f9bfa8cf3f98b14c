// Regions of images that lie in one layout, and the convolutions between them.
#ifndef TILEWRIGHT_NORMALIZE_IMAGEREGIONS_H
#define TILEWRIGHT_NORMALIZE_IMAGEREGIONS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>
#include <vector>

namespace tilewright {

/// An image that a convolution reads, behind pads and reshapes that belong to the convolution.
struct ImageRead {
  mlir::linalg::LinalgOp reader;
  unsigned into;                                  ///< region of the reader's result
  mlir::Value image;                              ///< in front of the pads and reshapes
  llvm::SmallVector<mlir::Operation *, 2> behind; ///< the pads and reshapes, those next to the image first
  std::optional<unsigned> from;                   ///< region of the image; nothing: it lies as the model says

  /// Returns the order of the image's dims in which channels are the last ones.
  llvm::SmallVector<int64_t> channelsLast() const;
};

/// Images that lie in one layout.
struct ImageRegion {
  llvm::SmallVector<mlir::linalg::LinalgOp> convolutions; ///< those that compute its images
  /// The convolutions whose result or image is shared with another convolution or a pool. Only their layout is chosen.
  llvm::SmallVector<mlir::linalg::LinalgOp> joined;
};

/// The images of a block. A region is the results of convolutions and everything that elementwise ops, pads, pools and
/// reductions compute from them, up to the next convolutions. Ops that read several images join their regions, because
/// what they read has to lie alike.
struct ImageRegions {
  std::vector<ImageRegion> regions;
  std::vector<ImageRead> reads;
  llvm::DenseMap<mlir::Operation *, unsigned> regionOf; ///< of ops that compute images
};

ImageRegions findImageRegions(mlir::Block &block);

/// Returns the order of the dims of a convolution's result in which channels are the last ones.
llvm::SmallVector<int64_t> channelsLastInResult(mlir::linalg::LinalgOp convolution);

} // namespace tilewright

#endif
