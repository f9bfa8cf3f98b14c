// Slices of inputs that a tile keeps in a buffer because it reads them several times: which slices can be kept, and how
// they are laid out. The planner counts with the same shapes that code generation allocates.
#ifndef TILEWRIGHT_LAYOUT_BUFFEREDSLICE_H
#define TILEWRIGHT_LAYOUT_BUFFEREDSLICE_H

#include "mlir/IR/AffineMap.h"
#include "llvm/ADT/SmallVector.h"

namespace tilewright {

/// Returns true if a copy with one element per point of the dims that the map depends on is no larger than the tensor
/// of this shape. A copy of overlapping windows would be larger.
bool isKeptByPoints(mlir::AffineMap map, llvm::ArrayRef<int64_t> extents, llvm::ArrayRef<int64_t> shape);

/// The properties that the buffers of a slice share for all tiles.
struct BufferedSlice {
  BufferedSlice(mlir::AffineMap map, llvm::ArrayRef<int64_t> extents);

  llvm::SmallVector<int64_t> dims; ///< those that the map depends on, in their memory order (dimsAsTheyLie)
  bool isOneRun;                   ///< true if neighbouring lines are contiguous in the tensor

  /// Returns true if a copy with one element per point of the dims is no larger than the tensor of this shape.
  bool isKeptByPoints(llvm::ArrayRef<int64_t> extents, llvm::ArrayRef<int64_t> shape) const;
  /// Returns the shape of the buffer: one size for each of the dims. With `padded`, neighbouring lines begin in
  /// different banks, except for lines that are contiguous in the tensor.
  llvm::SmallVector<int64_t> shape(llvm::ArrayRef<int64_t> tiles, int64_t elementBytes, bool padded) const;
};

/// Does so for one buffer.
llvm::SmallVector<int64_t> bufferedSliceShape(mlir::AffineMap map, llvm::ArrayRef<int64_t> extents,
                                              llvm::ArrayRef<int64_t> tiles, int64_t elementBytes, bool padded);

} // namespace tilewright

#endif
