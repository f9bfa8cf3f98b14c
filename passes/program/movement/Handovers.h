// What the ops of a tile touch, and at which scope the threads of two of them have to meet in between. Pure.
#ifndef TILEWRIGHT_PROGRAM_MOVEMENT_HANDOVERS_H
#define TILEWRIGHT_PROGRAM_MOVEMENT_HANDOVERS_H

#include "passes/program/movement/ParallelUnits.h"

namespace tilewright {

struct SliceAccess {
  mlir::Value slice;
  bool writes;
  ElementUnits units; ///< all unknown where the op is no plain loop nest
};

/// The accesses of a `tile.compute` or `tile.move`, in blocks of this shape; other ops have none.
llvm::SmallVector<SliceAccess> accessesOf(mlir::Operation &op, BlockShape shape);

/// The scope at which the threads of both have to meet between the two; nothing where their order does not matter.
/// Slices are those of one tile: buffers that share memory are told by their offsets.
std::optional<tile::Scope> scopeBetween(const SliceAccess &before, const SliceAccess &after, const UnitLevels &levels);

/// A `tile.sync` in front of op `before` of a walk's ops, syncs not counted; their number stands for the end.
struct PlacedSync {
  unsigned before;
  tile::Scope scope;
};

/// The syncs that the tiles of a part need, in order.
struct SyncPlan {
  llvm::SmallVector<PlacedSync> syncs;

  /// Empty if they stand in order, at most one in front of each op, and no further out than the block.
  std::string verify() const;
  void print(llvm::raw_ostream &os) const;
};

/// The fewest syncs, of the innermost scopes, that order all accesses: as late as possible, so that one sync serves
/// what comes before it. Nothing for a part with ops other than nests, moves and buffers, with `why`.
std::optional<SyncPlan> planSyncs(tile::ParallelOp part, BlockShape shape, std::string &why);

} // namespace tilewright

#endif
