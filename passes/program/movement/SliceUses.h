// Who writes a slice of a program and who reads it, in program order.
#ifndef TILEWRIGHT_PROGRAM_MOVEMENT_SLICEUSES_H
#define TILEWRIGHT_PROGRAM_MOVEMENT_SLICEUSES_H

#include "dialects/tile/TileDialect.h"

namespace tilewright {

struct SliceUses {
  llvm::SmallVector<tile::StoreOp> stores;
  llvm::SmallVector<tile::LoadOp> loads;
  /// Accumulators, moves, and anything else: neither a load nor a store of single elements.
  bool others = false;
};

SliceUses usesOf(mlir::Value slice);

/// Whether `a` comes before `b` in the program, both somewhere inside it.
bool comesBefore(mlir::Operation *a, mlir::Operation *b);

/// Whether the nest visits every point of its extents once, over all tiles of its part.
bool visitsAll(tile::ComputeOp compute);

} // namespace tilewright

#endif
