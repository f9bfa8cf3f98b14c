// Collects the ops that write and read a slice of a program, in program order.
#ifndef TILEWRIGHT_PROGRAM_MOVEMENT_SLICEUSES_H
#define TILEWRIGHT_PROGRAM_MOVEMENT_SLICEUSES_H

#include "dialects/tile/TileDialect.h"

namespace tilewright {

struct SliceUses {
  llvm::SmallVector<tile::StoreOp> stores;
  llvm::SmallVector<tile::LoadOp> loads;
  /// True if an op other than a load or store of single elements uses the slice, such as an accumulator or a move.
  bool others = false;
};

SliceUses usesOf(mlir::Value slice);

/// Returns true if `a` comes before `b` in the program; both may be nested in it at any depth.
bool comesBefore(mlir::Operation *a, mlir::Operation *b);

/// Returns true if the nest visits every point of its extents exactly once, over all tiles of its part.
bool visitsAll(tile::ComputeOp compute);

} // namespace tilewright

#endif
