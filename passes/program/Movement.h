// The decision behind lowering a subprogram to a tile program: which roots share a loop nest, and which inputs are
// staged in a buffer of the workgroup so that each byte of a binding is read once. Pure: it reads the subprogram and
// changes nothing.
#ifndef TILEWRIGHT_PROGRAM_MOVEMENT_H
#define TILEWRIGHT_PROGRAM_MOVEMENT_H

#include "dialects/tile/TileDialect.h"
#include "passes/graph/ReducedWalk.h"
#include "llvm/ADT/MapVector.h"

namespace tilewright {

/// An access expressed in the dims of the subprogram's iteration space, so that accesses of different roots can be
/// compared.
struct SpaceAccess {
  mlir::Value tensor; ///< block argument or root result, looked through connects
  mlir::AffineMap map;
  mlir::IntegerSet guard;
  bool operator==(const SpaceAccess &other) const {
    return tensor == other.tensor && map == other.map && guard == other.guard;
  }
};

/// One loop nest: roots with the same dims, whose reductions share one set of reduced dims.
struct Nest {
  llvm::SmallVector<int64_t> dims;       ///< dims of the iteration space, ascending
  llvm::SmallVector<int64_t> reductions; ///< the reduced dims among them
  llvm::SmallVector<tile::ExprOp> roots; ///< roots in program order
  tile::ExprOp running;                  ///< root whose maximum others use while it is being accumulated, or null
  WalkPhase phase = WalkPhase::before;   ///< when the nest runs, if the tile walks a dim in blocks
};

/// A slice of an input that several nests read. The first of them copies it to a buffer while it reads it; if that nest
/// runs over more points than the slice has elements, a separate copy runs before it.
struct TileStaging {
  SpaceAccess access;
  unsigned nest;
  bool inNest;
};

struct Movement {
  llvm::SmallVector<Nest> nests; ///< nests in the order in which they run
  llvm::DenseMap<mlir::Operation *, unsigned> nestOf;
  llvm::SmallVector<TileStaging> tileStaged;    ///< accesses copied to a buffer once per tile
  llvm::SetVector<mlir::Value> workgroupStaged; ///< inputs copied whole, once per workgroup
  /// Results of roots that a later nest reads and that therefore need a buffer.
  llvm::SetVector<mlir::Value> buffered;
  /// Buffered results that are stored relative to a maximum so far, each with the maximum that corrects it.
  llvm::MapVector<mlir::Value, mlir::Value> relative;
  int64_t walked = -1;                      ///< dim that the tile walks in blocks, or -1
  llvm::SmallVector<tile::ExprOp> grown;    ///< roots that are reduced along the walked dim
  llvm::SmallVector<tile::ExprOp> rescaled; ///< grown roots that are proportional to exp(-maximum)
  tile::ExprOp maximum;                     ///< grown root whose maximum others use while it grows, or null
};

/// Returns how many of the innermost grid dims a nest does not depend on: its results are kept for the tiles along
/// them.
int64_t keptAlong(tile::SubprogramOp subprogram, const Nest &nest);

/// Returns, for each dim of a root, the dim of the iteration space that it is.
llvm::ArrayRef<int64_t> placeOf(tile::ExprOp root);

/// Returns the access to input `i` of `root` in the dims of the iteration space.
SpaceAccess accessInSpace(tile::ExprOp root, unsigned i);

/// Decides on nests and buffers; the plan says which inputs are staged. Rows of at least
/// `onlineRow` points may have an online maximum.
Movement decideMovement(tile::SubprogramOp subprogram, int64_t onlineRow);

} // namespace tilewright

#endif
