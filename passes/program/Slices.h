// Dense slices as memrefs, and the strides of their elements.
#ifndef TILEWRIGHT_PROGRAM_SLICES_H
#define TILEWRIGHT_PROGRAM_SLICES_H

#include "dialects/tile/TileDialect.h"

namespace tilewright {

/// Returns the memref type that holds a dense slice; i1 takes a byte.
mlir::MemRefType memrefOf(tile::SliceType slice, mlir::Attribute space = {});

/// Returns row-major strides in elements.
llvm::SmallVector<int64_t> denseStrides(llvm::ArrayRef<int64_t> shape);

/// Returns the distance, in elements, between the accesses of two points that differ by one in `dim`: 0 if the access
/// does not depend on `dim`, none if the distance is not constant. `strides` are those of the slice.
std::optional<int64_t> strideAlong(mlir::AffineMap map, llvm::ArrayRef<int64_t> strides, unsigned dim);

/// Returns the dim with which the innermost index of a dense slice advances by one, if no other index depends on it;
/// else -1.
int64_t innermostDim(tile::SliceType type, mlir::AffineMap map);

/// Inserts a loop nest before `move` that does what the move does, so that there is one way to copy. Elements take the
/// destination's type, which is at least as wide.
tile::ComputeOp copyNest(tile::MoveOp move);

} // namespace tilewright

#endif
