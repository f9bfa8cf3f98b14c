// Emits the loads and stores of a nest. The lanes of an access are contiguous, all the same element, or scattered. Also
// emits prefetches of the data that the next tile reads and the next nest writes.
#ifndef TILEWRIGHT_CODEGEN_COMMON_NESTMEMORY_H
#define TILEWRIGHT_CODEGEN_COMMON_NESTMEMORY_H

#include "passes/codegen/common/LaneBuilder.h"
#include "passes/codegen/common/NestStructure.h"
#include "passes/support/AffineAlgebra.h"

namespace tilewright {

class NestMemory : protected LaneBuilder {
protected:
  NestMemory(mlir::OpBuilder &builder, tile::ComputeOp compute, const NestStructure &nest,
             const mlir::IRMapping &values, VectorShape shape, NestThreads *threads)
      : LaneBuilder(builder, compute.getLoc(), compute.getExtents().size(), nest.vectorDim, nest.lanes),
        compute(compute), outer(values), threads(threads), shape(shape), ranges(domainRanges(compute.getExtents())),
        wholeLanes(nest.lanes) {
    if (!threads)
      findNextOutputs();
  }

  mlir::Value emitLoad(tile::LoadOp load, mlir::Value mask);
  /// Loads elements of a table. Rows whose number all lanes share are contiguous or scalar loads.
  mlir::Value emitGather(tile::GatherOp op, const mlir::IRMapping &values, mlir::Value mask);
  void store(mlir::Value value, mlir::Value slice, tile::SliceType type, mlir::AffineMap map, mlir::Value mask,
             bool streamed = false);
  /// Prefetches the cache lines that the next nest will write. This nest computes on cached data and leaves memory
  /// idle, whereas the stores of the next nest would wait for their lines.
  void prefetchNextOutputs();
  mlir::Value emitWithin(mlir::IntegerSet set, bool onLanes);
  bool differsByLane(mlir::IntegerSet set, mlir::AffineExpr constraint);
  /// Returns the elements that a load reads for each of its lanes, if all of them are in one line, or nothing.
  std::optional<int64_t> loadedPerLane(tile::LoadOp load);

  tile::ComputeOp compute;
  const mlir::IRMapping &outer;
  NestThreads *threads; ///< null: one thread runs the nest
  VectorShape shape;
  llvm::SmallVector<Interval> ranges; ///< of the indices that are emitted
  bool leavesMemoryIdle = true;       ///< true if later nests of the tile leave memory idle
  bool guardsHold = false;            ///< true where a test says that all guards hold

private:
  /// The layout of an access's lanes in memory: one element for all, neighbours, or elements anywhere.
  enum class Lanes { uniform, contiguous, scattered };

  Lanes lanesOf(tile::SliceType type, mlir::AffineMap map);
  llvm::SmallVector<mlir::Value> scalarIndices(mlir::AffineMap map);
  /// Returns the values of an expression at the indices that are emitted, or nothing if it has symbols.
  std::optional<Interval> rangeOf(mlir::AffineExpr expr);
  /// Returns true if lanes can compute an expression in 32 bits. Comparisons then have as many lanes as the loads that
  /// they mask.
  bool isSmall(mlir::AffineExpr expr);
  /// Returns the indices of a load on lanes. A guarded one outside of its slice has its lanes off, and moves to the
  /// slice's border along dims along which it may be `outside` bytes away. With the bytes of a page, it reads no page
  /// that belongs to nothing.
  llvm::SmallVector<mlir::Value> indicesOf(tile::LoadOp load, int64_t outside);
  mlir::Value loadScalar(mlir::Value memory, mlir::Type element, mlir::AffineMap map, mlir::Value guard);
  /// Returns the value that `read` loads if the guard holds, and zeros otherwise. A thread whose guard fails does not
  /// load at all.
  mlir::Value loadWhere(mlir::Value guard, mlir::Type type, llvm::function_ref<mlir::Value()> read);
  /// Prefetches the data that the same load will read in the next tile. Later nests of this tile leave memory idle, and
  /// the hardware prefetcher stops when this load's stream is interrupted.
  /// It needs none for windows, most of which are read again from the cache.
  void prefetchNextTile(tile::LoadOp load, mlir::Value memory, mlir::Type element);
  /// Returns true if points that are reduced and points that are not read the same elements, as overlapping windows do.
  bool readsWindows(mlir::AffineMap map);
  void prefetchLanes(mlir::Value memory, mlir::Type element, llvm::ArrayRef<mlir::Value> first, bool forWrite,
                     unsigned locality);
  /// Returns the fastest-varying dim of the walk that the map depends on, or -1 if a tile has only one nest.
  int64_t fastestWalkedDim(mlir::AffineMap map);
  int64_t tileBytes(mlir::AffineMap map, mlir::Type element);
  mlir::Value loadContiguous(mlir::Value memory, mlir::Type element, mlir::ValueRange at, mlir::Value lanesRead);
  mlir::Value gather(mlir::Value memory, tile::SliceType type, mlir::Value linear, mlir::Value lanesRead);
  /// Returns the coordinate of a table as a number or, if lanes differ, as a vector. It lies within the table.
  mlir::Value coordinate(mlir::Value index, int64_t extent, const mlir::IRMapping &values);
  /// Returns the coordinates of the first lane if the lanes read neighbouring elements of the table.
  std::optional<llvm::SmallVector<mlir::Value>> startOfRow(tile::GatherOp op, const mlir::IRMapping &values);
  /// Loads lanes with a small stride as contiguous vectors and extracts the lanes with shuffles. Returns nothing if the
  /// loads might reach past the end of the slice. Accesses with interleaved lanes load the same vectors, so that LLVM
  /// can share the loads.
  std::optional<mlir::Value> loadStrided(mlir::Value memory, mlir::Type element, tile::SliceType type,
                                         mlir::AffineMap map);
  /// Does so for some lanes, or all if `lanesRead` is null; the others are zero. Returns nothing if lanes leave the
  /// innermost dim.
  std::optional<mlir::Value> loadStridedWhere(mlir::Value lanesRead, mlir::Value memory, mlir::Type element,
                                              tile::LoadOp load);
  /// Returns the distance of neighbouring lanes, if vectors of neighbouring elements are loaded for it.
  std::optional<int64_t> smallStride(mlir::Type element, tile::SliceType type, mlir::AffineMap map);
  /// Returns this distance if all lanes lie in one line.
  std::optional<int64_t> strideInLine(tile::LoadOp load);
  /// Returns true if a test says that what a guarded load reads lies in its slice.
  bool isInside(tile::LoadOp load) { return guardsHold && load.getGuard(); }
  /// Returns the elements of such a vector.
  int64_t chunkOf(mlir::Type element);
  /// Extracts every stride-th element, from the position `before` on, of parts: those for the lanes from `lane` on are
  /// numbered.
  mlir::Value everyNth(mlir::Type element, int64_t stride, int64_t before,
                       llvm::function_ref<mlir::Value(int64_t lane, int64_t number)> loadPart);
  /// Returns the alignment of the vectors of threads, in bytes. The choice of their lanes guarantees it.
  int64_t vectorBytes(mlir::Type element) const;
  /// Returns true if every whole vector of the access starts at a multiple of the register's bytes, which non-temporal
  /// stores require. Bindings themselves are aligned, because IREE aligns them for its own code.
  bool fillsRegisters(tile::SliceType type, mlir::AffineMap map);
  /// Converts between an i1 and its representation in memory, a byte that is zero or one.
  mlir::Value fromStorage(mlir::Value value, mlir::Type type);
  mlir::Value toStorage(mlir::Value value, mlir::Type element);
  /// Finds the stores to bindings in the next nest, if it visits the same points.
  void findNextOutputs();
  /// Returns the next nest over the same points. After an online softmax, nests that compute its rescaling factors may
  /// lie in between.
  tile::ComputeOp nextNest();

  int64_t wholeLanes; ///< lanes of all vectors except tails
  llvm::SmallVector<tile::StoreOp> nextOutputs;
};

} // namespace tilewright

#endif
