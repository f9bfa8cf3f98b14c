// Dense slices as memrefs.
#ifndef TILEWRIGHT_PROGRAM_SLICES_H
#define TILEWRIGHT_PROGRAM_SLICES_H

#include "dialects/tile/TileDialect.h"
#include "passes/support/Strides.h"

namespace tilewright {

/// Returns the memref type that holds a dense slice; i1 takes a byte.
mlir::MemRefType memrefOf(tile::SliceType slice, mlir::Attribute space = {});

/// Returns the dim with which the innermost index of a dense slice advances by one, if no other index depends on it;
/// else -1.
int64_t innermostDim(tile::SliceType type, mlir::AffineMap map);

/// Inserts a loop nest before `move` that does what the move does, so that there is one way to copy. Elements take the
/// destination's type, which is at least as wide.
tile::ComputeOp copyNest(tile::MoveOp move);

} // namespace tilewright

#endif
