// Loads and stores of a nest: neighbours in lanes, one element for all of them, or elements anywhere; and what is asked
// of the caches ahead of time.
#ifndef TILEWRIGHT_CODEGEN_COMMON_NESTMEMORY_H
#define TILEWRIGHT_CODEGEN_COMMON_NESTMEMORY_H

#include "passes/codegen/common/LaneBuilder.h"
#include "passes/codegen/common/NestStructure.h"

namespace tilewright {

class NestMemory : protected LaneBuilder {
protected:
  NestMemory(mlir::OpBuilder &builder, tile::ComputeOp compute, const NestStructure &nest,
             const mlir::IRMapping &values, VectorShape shape, NestThreads *threads)
      : LaneBuilder(builder, compute.getLoc(), compute.getExtents().size(), nest.vectorDim, nest.lanes),
        compute(compute), outer(values), threads(threads), shape(shape), wholeLanes(nest.lanes) {
    if (!threads)
      findNextOutputs();
  }

  mlir::Value emitLoad(tile::LoadOp load, mlir::Value mask);
  void store(mlir::Value value, mlir::Value slice, tile::SliceType type, mlir::AffineMap map, mlir::Value mask,
             bool streamed = false);
  /// Asks for the lines that the next nest will write. This one computes from what the caches hold and leaves memory
  /// idle, while a store would wait for its line.
  void prefetchNextOutputs();
  mlir::Value emitWithin(mlir::IntegerSet set, bool onLanes);
  bool differsByLane(mlir::IntegerSet set, mlir::AffineExpr constraint);

  tile::ComputeOp compute;
  const mlir::IRMapping &outer;
  NestThreads *threads; ///< null: one thread runs the nest
  VectorShape shape;
  bool leavesMemoryIdle = true; ///< the tile, in its later nests

private:
  /// Where the lanes of an access lie.
  enum class Lanes { uniform, contiguous, scattered };

  Lanes lanesOf(tile::SliceType type, mlir::AffineMap map);
  llvm::SmallVector<mlir::Value> scalarIndices(mlir::AffineMap map);
  mlir::Value loadScalar(mlir::Value memory, mlir::Type element, mlir::AffineMap map, mlir::Value guard);
  /// What `read` reads where the guard holds, else zeros. Threads do not read at all elsewhere.
  mlir::Value loadWhere(mlir::Value guard, mlir::Type type, llvm::function_ref<mlir::Value()> read);
  /// Asks for what the same load will read at the next tile. Later nests of this tile leave memory idle, and the
  /// hardware has stopped looking ahead when its stream begins again.
  void prefetchNextTile(tile::LoadOp load, mlir::Value memory, mlir::Type element);
  void prefetchLanes(mlir::Value memory, mlir::Type element, llvm::ArrayRef<mlir::Value> first, bool forWrite,
                     unsigned locality);
  /// The dim that a map depends on whose tile changes first along the walk, if there are more nests in a tile.
  int64_t fastestWalkedDim(mlir::AffineMap map);
  int64_t tileBytes(mlir::AffineMap map, mlir::Type element);
  mlir::Value loadContiguous(mlir::Value memory, mlir::Type element, mlir::AffineMap map, mlir::Value lanesRead);
  mlir::Value gather(mlir::Value memory, mlir::Type element, tile::SliceType type, mlir::AffineMap map,
                     mlir::Value lanesRead);
  /// Where lanes are `stride` elements apart, few: whole vectors of what lies there, of which shuffles take the lanes.
  /// Nothing if those may reach past the end of the slice. Accesses between each other's lanes load the same vectors.
  std::optional<mlir::Value> loadStrided(mlir::Value memory, mlir::Type element, tile::SliceType type,
                                         mlir::AffineMap map);
  /// What the threads' vectors are aligned to: their lanes were chosen so.
  int64_t vectorBytes(mlir::Type element) const;
  /// Whether every whole vector of the access starts at a multiple of the register's bytes, as the machine wants it of
  /// stores past the caches. Bindings do: IREE aligns them for its own code.
  bool fillsRegisters(tile::SliceType type, mlir::AffineMap map);
  /// i1 is a byte in memory, zero or one.
  mlir::Value fromStorage(mlir::Value value, mlir::Type type);
  mlir::Value toStorage(mlir::Value value, mlir::Type element);
  /// What the next nest will store to bindings, where it visits the same points.
  void findNextOutputs();
  /// The one that runs over the same points; factors of a running maximum are made in between.
  tile::ComputeOp nextNest();

  int64_t wholeLanes; ///< of all vectors but the tails
  llvm::SmallVector<tile::StoreOp> nextOutputs;
};

} // namespace tilewright

#endif
