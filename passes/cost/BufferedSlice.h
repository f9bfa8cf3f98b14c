// Slices of inputs that a tile keeps in a buffer, because it reads them again: which can be kept, and how they lie
// there. What the plan counts and code generation allocates is the same.
#ifndef TILEWRIGHT_COST_BUFFEREDSLICE_H
#define TILEWRIGHT_COST_BUFFEREDSLICE_H

#include "mlir/IR/AffineMap.h"

namespace tilewright {

/// Whether a copy of what the map reads, with a place for each point of the dims it depends on, is no larger than the
/// tensor of this shape, as one of windows that overlap would be.
bool isKeptByPoints(mlir::AffineMap map, llvm::ArrayRef<int64_t> extents, llvm::ArrayRef<int64_t> shape);

/// The sizes of the buffer, one for each of those dims as they lie (dimsAsTheyLie). `padded`: neighbouring lines begin
/// in different banks, but for lines that lie behind one another in the tensor.
llvm::SmallVector<int64_t> bufferedSliceShape(mlir::AffineMap map, llvm::ArrayRef<int64_t> extents,
                                          llvm::ArrayRef<int64_t> tiles, int64_t elementBytes, bool padded);

} // namespace tilewright

#endif
