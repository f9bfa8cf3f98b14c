// Finds the accesses of the ops of a tile and the scope at which threads must synchronise between two of them. Pure.
#ifndef TILEWRIGHT_PROGRAM_MOVEMENT_HANDOVERS_H
#define TILEWRIGHT_PROGRAM_MOVEMENT_HANDOVERS_H

#include "passes/program/movement/ParallelUnits.h"
#include "passes/support/Declined.h"

namespace tilewright {

struct SliceAccess {
  mlir::Value slice;
  bool writes;
  ElementUnits units; ///< all unknown if the op is not a plain loop nest
};

/// Returns the accesses of a `tile.compute` or `tile.move` in blocks of this shape; other ops have none.
llvm::SmallVector<SliceAccess> accessesOf(mlir::Operation &op, BlockShape shape);

/// Returns the scope at which the threads of both accesses must synchronise between them, or none if their order does
/// not matter. Both slices belong to the same tile; buffers that share memory are recognised by their offsets.
std::optional<tile::Scope> scopeBetween(const SliceAccess &before, const SliceAccess &after, const UnitLevels &levels);

/// A `tile.sync` in front of op number `before` of a walk. Syncs are not counted; the number of ops stands for the end.
struct PlacedSync {
  unsigned before;
  tile::Scope scope;
};

/// The syncs that the tiles of a part need, in order.
struct SyncPlan {
  llvm::SmallVector<PlacedSync> syncs;

  /// Returns an error, or an empty string if the syncs are in order, at most one is in front of each op, and none is of
  /// a wider scope than the block.
  std::string verify() const;
  void print(llvm::raw_ostream &os) const;
};

/// Returns the fewest syncs, with the innermost scopes, that order all accesses. Each is placed as late as possible, so
/// that it serves everything before it. Declines for a part with ops other than nests, moves and buffers.
OrDeclined<SyncPlan> planSyncs(tile::ParallelOp part, BlockShape shape);

} // namespace tilewright

#endif
