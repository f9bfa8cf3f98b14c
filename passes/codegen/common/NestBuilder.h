// Builds one loop nest for NestEmitter.h: its loops, the accumulators that they carry, and the ops at each point.
#ifndef TILEWRIGHT_CODEGEN_COMMON_NESTBUILDER_H
#define TILEWRIGHT_CODEGEN_COMMON_NESTBUILDER_H

#include "passes/codegen/common/NestOps.h"

namespace tilewright {

class NestBuilder : NestOps {
public:
  NestBuilder(mlir::OpBuilder &builder, tile::ComputeOp compute, const NestStructure &nest,
              const mlir::IRMapping &values, VectorShape shape, NestThreads *threads)
      : NestOps(builder, compute, nest, values, shape, threads) {}

  void emit();
  /// Emits this nest and, in the same loops, the ops of `other`. The accesses of `other` then use the memory bandwidth
  /// that this nest leaves idle.
  void emitWith(NestBuilder &other);

private:
  void findOffsets();
  /// Emits everything inside the first `level` loops.
  void emitLevel(unsigned level, mlir::IRMapping &values, mlir::Value mask);
  /// Emits the ops that belong directly inside the first `level` loops, including those of the nest beside this one.
  void emitOps(unsigned level, mlir::IRMapping &values, mlir::Value mask);
  /// Emits the ops of the nest that shares these loops, at the same point of its own tile.
  void emitBeside(unsigned level, mlir::IRMapping &values, mlir::Value mask);

  // --- loops (NestLoops.cpp) -----------------------------------------------------------------------------------------

  using Values = llvm::SmallVector<mlir::Value>;
  using LoopBody = llvm::function_ref<Values(mlir::IRMapping &, mlir::Value mask, mlir::ValueRange carried)>;
  using IndexBody = llvm::function_ref<Values(mlir::Value index, mlir::ValueRange carried)>;

  /// Emits the loop over nest.order[level] with its carried values. The loop over the vector dim becomes a loop over
  /// whole vectors and a masked tail.
  Values emitLoop(unsigned level, const mlir::IRMapping &values, mlir::Value mask, mlir::ValueRange carried,
                  LoopBody body);
  Values emitWholeTile(const mlir::IRMapping &values, mlir::Value mask, mlir::ValueRange carried, LoopBody body);
  /// Emits the loop for a tile that may be the last of the grid. Tiles begin at multiples of their size, so only the
  /// last one can be smaller.
  Values emitWholeOrLastTile(const mlir::IRMapping &values, mlir::Value mask, mlir::ValueRange carried, LoopBody body);
  /// Emits the last points of a row with no more registers than they need. Their accumulators are the first lanes of
  /// the carried vectors.
  Values emitTail(mlir::Value first, int64_t points, const mlir::IRMapping &values, mlir::ValueRange carried,
                  LoopBody body);
  /// Returns true if a load of lanes has a guard.
  bool readsUnderGuards();
  /// Emits this thread's share of a loop: every n-th vector from its first one on, for n threads along the dim. The
  /// lanes divide the extents, so no vector is partial.
  Values emitShare(unsigned level, const mlir::IRMapping &values, mlir::ValueRange carried, LoopBody body);
  Values emitCounted(int64_t count, mlir::ValueRange carried, IndexBody body);
  Values emitPoint(int64_t dim, mlir::Value index, const mlir::IRMapping &values, mlir::Value mask,
                   mlir::ValueRange carried, LoopBody body);
  Values emitUnrolled(int64_t dim, const mlir::IRMapping &values, mlir::Value mask, mlir::ValueRange carried,
                      LoopBody body);
  Values emitFor(int64_t dim, mlir::Value low, mlir::Value high, int64_t step, const mlir::IRMapping &values,
                 mlir::Value mask, mlir::ValueRange carried, LoopBody body);
  Values emitForOp(mlir::Value low, mlir::Value high, mlir::Value step, mlir::ValueRange carried, IndexBody body);

  // --- accumulators and the loops that reduce into them (NestReductions.cpp) -----------------------------------------
  //
  // A reduced loop carries the accumulators, followed by one flag vector per extremum in which NaN wins. The flags mark
  // the lanes that have seen a NaN.

  void emitReductions(mlir::IRMapping &values, mlir::Value mask);
  /// Emits the reduction of one thread. A thread that stores nothing also reads nothing, and combines its start values
  /// with those of the others.
  Values emitOwnReduction(mlir::IRMapping &values, mlir::Value mask, mlir::ValueRange carried);
  Values emitReductionLoop(unsigned level, mlir::IRMapping &values, mlir::Value mask, mlir::ValueRange carried);
  Values emitReducedLoop(unsigned level, mlir::IRMapping &values, mlir::Value mask, mlir::ValueRange carried);
  void mapAccumulators(mlir::IRMapping &values, mlir::ValueRange carried);
  /// Returns the yielded accumulators. Lanes past the end of a reduced vector dim keep their previous values.
  Values nextValues(mlir::IRMapping &values, mlir::Value mask, mlir::ValueRange carried);

  /// Stores the accumulators of a point. `correction` scales those that are relative to the last reference.
  void storeReductions(mlir::ValueRange carried, mlir::Value correction, mlir::Value mask);

  /// Returns what the reduced loops carry at first.
  Values startValues();
  mlir::vector::CombiningKind kindOf(unsigned i);
  mlir::Type elementOf(unsigned i);
  llvm::SmallVector<unsigned> floatAccumulators();
  bool reducesLanes();
  /// Returns true if several threads accumulate. Each then starts from the neutral element, and the initial value is
  /// combined at the end.
  bool isShared() const { return threads && threads->combines(); }
  /// Returns the neutral element of accumulator `i`.
  mlir::Value neutral(unsigned i);
  mlir::Value neutralLanes(const Extremum &extremum);
  mlir::Value startValue(unsigned i);
  mlir::Value combine(unsigned i, mlir::Value value);
  mlir::Value reduceLanes(unsigned i, mlir::Value value);
  void storeAccumulator(unsigned i, mlir::Value value, mlir::Value sawNaN, mlir::Value mask);

  // --- windows that are reduced at once (NestWindows.cpp) -------------------------------------------------------------

  /// One of the windows, with the values at the point that is emitted.
  struct Window {
    mlir::Value index;
    Interval range; ///< of the index
    mlir::IRMapping values;
    Values carried;
  };

  /// Emits the last parallel loop and all that is inside.
  void emitWindows(mlir::IRMapping &values, mlir::Value mask);
  /// Reduces the windows from the index `first` on. They are tested once, so that accesses have masks only where a
  /// window may leave its image: with AVX2, masks take about as long as the sums.
  void reduceTogether(mlir::Value first, int64_t count, const mlir::IRMapping &values, mlir::Value mask);
  /// Returns whether all guards hold in all lanes at all points of `count` windows from the current index on. Returns
  /// null if nothing is guarded, or if tests at corners of these points do not tell.
  mlir::Value areWindowsInside(int64_t count);
  /// Returns the least value of an expression there, at the indices of the first window, lane and point, or nothing if
  /// it is not linear in them.
  std::optional<mlir::AffineExpr> leastOfWindows(mlir::AffineExpr expr, int64_t count);
  void reduceWindows(mlir::Value first, int64_t count, const mlir::IRMapping &values, mlir::Value mask);
  void enterWindow(const Window &window);
  /// Emits the reduced loops from a level on, each point of a window for all windows before the next point.
  void reducePoints(unsigned level, llvm::MutableArrayRef<Window> windows, mlir::Value mask);

  // --- NaN flags of extrema (NestFlags.cpp) --------------------------------------------------------------------------

  mlir::Value noNaN(const Extremum &extremum);
  /// Returns a mask of the lanes that hold a NaN. If both halves are tested at once, a lane of the mask stands for one
  /// lane of each half.
  mlir::Value isNaN(const Extremum &extremum, mlir::Value seen);
  /// Returns true if one comparison tests both halves of an extremum's vector for NaN. A tail does so only if it has
  /// more lanes than the flags.
  bool testsHalves(const Extremum &extremum);
  mlir::Value half(mlir::Value vector, int64_t which);
  /// Returns how many lanes of carried value `i` belong to the current number of lanes.
  int64_t carriedLanes(size_t i);
  /// Returns the flags of the lanes that saw a NaN, or null if NaN does not win in accumulator `i`.
  mlir::Value flagsOf(unsigned i, llvm::ArrayRef<mlir::Value> sawNaN);
  mlir::Value notANumber(mlir::Type type);

  // --- online softmax (NestMaximum.cpp) ------------------------------------------------------------------------------
  //
  // The nest goes over blocks of vectors that stay in registers. For each block it first computes the maximum, then the
  // ops that are relative to the reference, such as exp(x - reference). The reference is one number for all lanes. It
  // moves to the maximum only if the maximum exceeds it by more than kLag. That is rare after the first block, so
  // blocks do not wait for each other and the sums need no rescaling.

  /// One vector of a block.
  struct Vector {
    mlir::Value index, mask;
    mlir::IRMapping values;
  };

  /// Returns the accumulators over all blocks, and the factor that rescales relative sums from the last reference to
  /// the maximum.
  std::pair<Values, mlir::Value> emitRunning(mlir::IRMapping &values, mlir::ValueRange carried);
  /// Emits the block that starts at the current index. `before` holds the accumulators, the NaN flags of extrema and
  /// the reference.
  Values emitBlock(const mlir::IRMapping &values, int64_t points, mlir::ValueRange before);
  /// Emits the ops that do not depend on the maximum, and updates the accumulators that do not depend on it.
  void emitIndependent(Vector &vector, Values &now);
  void emitRelative(Vector &vector, Values &now);
  void emitRelativeOp(mlir::Operation &op, Vector &vector);
  /// Updates the NaN flags. One comparison tests two vectors.
  void flagNaNs(llvm::ArrayRef<Vector> vectors, Values &now);
  /// Returns the maximum of the vectors and `before`, computed in two chains of half the length.
  mlir::Value largestOf(llvm::ArrayRef<Vector> vectors, mlir::Value before);
  /// Moves the reference, which is the last of `now`, to the maximum if it lags too far behind, and rescales the sums
  /// that are relative to it.
  void moveReference(Values &now);
  void storeReference(mlir::Value start, mlir::Value reference);

  mlir::Value yielded(unsigned i);
  bool isRelative(unsigned i);
  llvm::SmallVector<unsigned> relativeSums();
  /// Returns exp(from - to), or 1 where both are equal, even if both are infinite.
  mlir::Value factorBetween(mlir::Value from, mlir::Value to);
  mlir::Value keepPastEnd(mlir::Value mask, mlir::Value value, mlir::Value before);
  /// Returns the value that an extremum takes in, or the neutral element in lanes past the end.
  mlir::Value valueOf(const Extremum &extremum, const Vector &vector);
  mlir::Value larger(mlir::Value value, mlir::Value before);

  NestBuilder *beside = nullptr; ///< the nest that shares the loops of this one
};

} // namespace tilewright

#endif
