// Dense slices as memrefs, and how far apart their elements lie.
#ifndef TILEWRIGHT_PROGRAM_SLICES_H
#define TILEWRIGHT_PROGRAM_SLICES_H

#include "dialects/tile/TileDialect.h"

namespace tilewright {

/// The memref that holds a dense slice; i1 takes a byte.
mlir::MemRefType memrefOf(tile::SliceType slice, mlir::Attribute space = {});

/// Row-major distances in elements.
llvm::SmallVector<int64_t> denseStrides(llvm::ArrayRef<int64_t> shape);

/// How far apart in elements two accesses are whose points differ by one in `dim`: 0 when the access does not depend on
/// it, nothing when the distance is not constant. `strides` are those of the slice.
std::optional<int64_t> strideAlong(mlir::AffineMap map, llvm::ArrayRef<int64_t> strides, unsigned dim);

/// The dim that the innermost index of a dense slice advances by one with, if no other index depends on it; or -1.
int64_t innermostDim(tile::SliceType type, mlir::AffineMap map);

/// A move as a loop nest before it: there is one way to copy. Elements become what the target has, which is as wide or
/// wider.
tile::ComputeOp copyNest(tile::MoveOp move);

} // namespace tilewright

#endif
