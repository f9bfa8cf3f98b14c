// The decision behind lowering a subprogram to a tile program: which roots share a loop nest, and which inputs are
// staged in a buffer of the workgroup so that each byte of a binding is read once. Pure: reads the subprogram, changes
// nothing.
#ifndef TILEWRIGHT_PROGRAM_MOVEMENT_H
#define TILEWRIGHT_PROGRAM_MOVEMENT_H

#include "dialects/tile/TileDialect.h"
#include "passes/graph/ReducedWalk.h"
#include "llvm/ADT/MapVector.h"

namespace tilewright {

/// An access in the dims of the subprogram's index space, so that accesses of different roots can be compared.
struct SpaceAccess {
  mlir::Value tensor; ///< block argument or root result, looked at through connects
  mlir::AffineMap map;
  mlir::IntegerSet guard;
  bool operator==(const SpaceAccess &other) const {
    return tensor == other.tensor && map == other.map && guard == other.guard;
  }
};

/// One loop nest: roots with the same dims, and one set of reduced dims between them.
struct Nest {
  llvm::SmallVector<int64_t> dims;       ///< of the index space, ascending
  llvm::SmallVector<int64_t> reductions; ///< the reduced ones among them
  llvm::SmallVector<tile::ExprOp> roots; ///< in program order
  tile::ExprOp running;                  ///< the one whose maximum others use while it is accumulated; null: none
  WalkPhase phase = WalkPhase::before;   ///< when it runs, where the tile walks a dim in blocks
};

/// A slice of an input that several nests read: the first of them copies it to a buffer as it reads it, or, where that
/// nest runs over more points than the slice has elements, a copy of its own before.
struct TileStaging {
  SpaceAccess access;
  unsigned nest;
  bool inNest;
};

struct Movement {
  llvm::SmallVector<Nest> nests; ///< in the order in which they run
  llvm::DenseMap<mlir::Operation *, unsigned> nestOf;
  llvm::SmallVector<TileStaging> tileStaged;    ///< accesses copied to a buffer once per tile
  llvm::SetVector<mlir::Value> workgroupStaged; ///< inputs copied whole, once per workgroup
  /// Root results that a later nest reads, hence need a buffer.
  llvm::SetVector<mlir::Value> buffered;
  /// Those of them that are stored relative to a reference, with the maximum that they are to be relative to.
  llvm::MapVector<mlir::Value, mlir::Value> relative;
  int64_t walked = -1;                      ///< the dim that the tile walks in blocks
  llvm::SmallVector<tile::ExprOp> grown;    ///< what is reduced along it
  llvm::SmallVector<tile::ExprOp> rescaled; ///< those of them that are proportional to exp(-maximum)
  tile::ExprOp maximum;                     ///< the one of them that others use while it grows; null: none
};

/// How many of the last grid dims a nest has no part in: what it computes is kept for the tiles along them.
int64_t keptAlong(tile::SubprogramOp subprogram, const Nest &nest);

/// Where the dims of a root stand in the index space.
llvm::ArrayRef<int64_t> placeOf(tile::ExprOp root);

/// Input `i` of `root`, in the index space.
SpaceAccess accessInSpace(tile::ExprOp root, unsigned i);

/// Keeps up to `workgroupStaging` bytes of inputs for a whole workgroup. Running maxima have a reference for every
/// `referenceBlock` points.
Movement decideMovement(tile::SubprogramOp subprogram, int64_t workgroupStaging, int64_t referenceBlock);

} // namespace tilewright

#endif
