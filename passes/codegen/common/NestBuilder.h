// Builds one loop nest for NestEmitter.h: its loops, what they carry around, and the ops at each of their points.
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
  /// Emits both; what the other one does to memory goes on all the time.
  void emitWith(NestBuilder &other);

private:
  void findOffsets();
  /// What is inside the first `level` loops.
  void emitLevel(unsigned level, mlir::IRMapping &values, mlir::Value mask);
  /// The ops that belong there, with those of the nest beside.
  void emitOps(unsigned level, mlir::IRMapping &values, mlir::Value mask);
  /// The ops of the nest that shares these loops, at the same point of its own tile.
  void emitBeside(unsigned level, mlir::IRMapping &values, mlir::Value mask);

  // --- loops (NestLoops.cpp) -----------------------------------------------------------------------------------------

  using Values = llvm::SmallVector<mlir::Value>;
  using LoopBody = llvm::function_ref<Values(mlir::IRMapping &, mlir::Value mask, mlir::ValueRange carried)>;
  using IndexBody = llvm::function_ref<Values(mlir::Value index, mlir::ValueRange carried)>;

  /// The loop over nest.order[level], with values carried around it; the vector dim's becomes a loop over whole vectors
  /// and a masked tail.
  Values emitLoop(unsigned level, const mlir::IRMapping &values, mlir::Value mask, mlir::ValueRange carried,
                  LoopBody body);
  Values emitWholeTile(const mlir::IRMapping &values, mlir::Value mask, mlir::ValueRange carried, LoopBody body);
  /// Tiles begin at multiples of their size, so that all have it but the last of the grid, which has what remains.
  Values emitWholeOrLastTile(const mlir::IRMapping &values, mlir::Value mask, mlir::ValueRange carried, LoopBody body);
  /// The last points of a row, in no more registers than they take: of what is accumulated, in the first lanes.
  Values emitTail(mlir::Value first, int64_t points, const mlir::IRMapping &values, mlir::ValueRange carried,
                  LoopBody body);
  /// The part of a loop that falls to this thread: every so many vectors from its own first one. Lanes divide the
  /// extents, so no vector is partial.
  Values emitShare(unsigned level, const mlir::IRMapping &values, mlir::ValueRange carried, LoopBody body);
  Values emitCounted(int64_t count, mlir::ValueRange carried, IndexBody body);
  Values emitPoint(int64_t dim, mlir::Value index, const mlir::IRMapping &values, mlir::Value mask,
                   mlir::ValueRange carried, LoopBody body);
  Values emitFor(int64_t dim, mlir::Value low, mlir::Value high, int64_t step, const mlir::IRMapping &values,
                 mlir::Value mask, mlir::ValueRange carried, LoopBody body);
  Values emitForOp(mlir::Value low, mlir::Value high, mlir::Value step, mlir::ValueRange carried, IndexBody body);

  // --- accumulators and the loops that reduce into them (NestReductions.cpp) -----------------------------------------
  //
  // What is carried around a reduced loop: the accumulators, then which lanes of extrema that a NaN wins have seen one.

  void emitReductions(mlir::IRMapping &values, mlir::Value mask);
  /// A thread that stores nothing reads nothing: it meets the others with what it started from.
  Values emitOwnReduction(mlir::IRMapping &values, mlir::Value mask, mlir::ValueRange carried);
  Values emitReductionLoop(unsigned level, mlir::IRMapping &values, mlir::Value mask, mlir::ValueRange carried);
  Values emitReducedLoop(unsigned level, mlir::IRMapping &values, mlir::Value mask, mlir::ValueRange carried);
  void mapAccumulators(mlir::IRMapping &values, mlir::ValueRange carried);
  /// The yielded accumulators; lanes past the end of a reduced vector dim keep what they had.
  Values nextValues(mlir::IRMapping &values, mlir::Value mask, mlir::ValueRange carried);

  mlir::vector::CombiningKind kindOf(unsigned i);
  mlir::Type elementOf(unsigned i);
  llvm::SmallVector<unsigned> floatAccumulators();
  bool reducesLanes();
  /// Whether several threads accumulate: each starts from the neutral element, and the initial value joins at the end.
  bool isShared() const { return threads && threads->combines(); }
  /// What changes nothing when accumulator `i` takes it.
  mlir::Value neutral(unsigned i);
  mlir::Value neutralLanes(const Extremum &extremum);
  mlir::Value startValue(unsigned i);
  mlir::Value combine(unsigned i, mlir::Value value);
  mlir::Value reduceLanes(unsigned i, mlir::Value value);
  void storeAccumulator(unsigned i, mlir::Value value, mlir::Value sawNaN, mlir::Value mask);

  // --- flags of extrema (NestFlags.cpp) ------------------------------------------------------------------------------

  mlir::Value noNaN(const Extremum &extremum);
  /// Which lanes hold a NaN, in one half or the other where those are asked at once.
  mlir::Value isNaN(const Extremum &extremum, mlir::Value seen);
  /// Whether two registers of an extremum are asked at once, of a tail if its lanes are more than those flags.
  bool asksHalves(const Extremum &extremum);
  mlir::Value half(mlir::Value vector, int64_t which);
  /// How many lanes of carried value `i` go with the lanes at hand.
  int64_t carriedLanes(size_t i);
  /// Which lanes saw a NaN, if it wins in accumulator `i`.
  mlir::Value flagsOf(unsigned i, llvm::ArrayRef<mlir::Value> sawNaN);
  mlir::Value notANumber(mlir::Type type);

  // --- running maxima (NestMaximum.cpp) ------------------------------------------------------------------------------
  //
  // A block of vectors stays in registers: first its maximum, then what is relative to the reference. The reference is
  // one number for all lanes. It moves to the maximum when that has left it behind by more than a little, which hardly
  // ever happens after the first block, so that blocks neither wait for each other nor rescale what they add to.

  /// One vector of a block.
  struct Vector {
    mlir::Value index, mask;
    mlir::IRMapping values;
  };

  /// The accumulators over all blocks, and what takes relative sums from the last reference to the maximum.
  std::pair<Values, mlir::Value> emitRunning(mlir::IRMapping &values, mlir::ValueRange carried);
  /// `before` holds the accumulators, the flags of extrema and the reference. The block starts at the current index.
  Values emitBlock(const mlir::IRMapping &values, int64_t points, mlir::ValueRange before);
  /// What does not depend on the maximum, other accumulators with it.
  void emitIndependent(Vector &vector, Values &now);
  void emitRelative(Vector &vector, Values &now);
  void emitRelativeOp(mlir::Operation &op, Vector &vector);
  /// Two vectors are asked at once.
  void flagNaNs(llvm::ArrayRef<Vector> vectors, Values &now);
  /// In two chains, each half as long.
  mlir::Value largestOf(llvm::ArrayRef<Vector> vectors, mlir::Value before);
  /// Moves the reference, the last of `now`, and the sums that are relative to it, where it lags too far behind.
  void moveReference(Values &now);
  void storeReference(mlir::Value start, mlir::Value reference);

  mlir::Value yielded(unsigned i);
  bool isRelative(unsigned i);
  llvm::SmallVector<unsigned> relativeSums();
  /// exp(from - to), and one where they are equal, infinities too.
  mlir::Value factorBetween(mlir::Value from, mlir::Value to);
  mlir::Value keepPastEnd(mlir::Value mask, mlir::Value value, mlir::Value before);
  /// The value of an extremum, or the neutral element in lanes past the end.
  mlir::Value valueOf(const Extremum &extremum, const Vector &vector);
  mlir::Value larger(mlir::Value value, mlir::Value before);

  NestBuilder *beside = nullptr; ///< the nest that shares the loops of this one
};

} // namespace tilewright

#endif
