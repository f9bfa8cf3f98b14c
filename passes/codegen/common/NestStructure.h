// What is decided of a loop nest before any of it is emitted: the order of its loops, its lanes, the loop at which each
// op of its body belongs, and which accumulators are extrema.
#ifndef TILEWRIGHT_CODEGEN_COMMON_NESTSTRUCTURE_H
#define TILEWRIGHT_CODEGEN_COMMON_NESTSTRUCTURE_H

#include "passes/codegen/common/NestEmitter.h"
#include "llvm/ADT/SmallBitVector.h"

namespace tilewright {

/// An accumulator that takes the larger or smaller of two floats.
struct Extremum {
  mlir::Operation *op; ///< in the body
  mlir::BlockArgument accumulator;
  mlir::Value value;
  bool takesNaN; ///< a NaN wins over every number; otherwise it loses
};

/// Lanes of the vector that computes so few points of a row: whole registers, or a part of one.
int64_t lanesFor(int64_t points, int64_t registerBytes);

struct NestStructure {
  /// Without `threads` one thread runs the nest. `lanes`, where given, are those of a nest whose loops this one shares.
  NestStructure(tile::ComputeOp compute, VectorShape shape, const NestThreads *threads,
                std::optional<int64_t> lanes = std::nullopt);

  int64_t vectorDim, lanes = 1;
  llvm::SmallVector<int64_t> order;                         ///< loops, outermost first
  unsigned numParallel = 0;                                 ///< how many of them, from the outside, are not reduced
  llvm::DenseMap<mlir::Value, llvm::SmallBitVector> varies; ///< the dims along which a value of the body changes
  llvm::DenseMap<mlir::Operation *, unsigned> levels;       ///< how many loops are around an op
  llvm::DenseMap<mlir::Operation *, bool> vectorised;
  llvm::SmallVector<Extremum> extrema;
  unsigned numFlags = 0; ///< extrema that a NaN wins
  /// The accumulator that the rest of the body uses while it is accumulated, or -1, and what depends on its next value.
  int64_t running = -1;
  llvm::SetVector<mlir::Operation *> relative;

private:
  /// For each op and value of the body the dims it changes along.
  void findDependences();
  /// Whether something that takes many instructions changes along the lanes, which are not reduced; `ofLanesAlone`, and
  /// along no other loop, as the deviation of a column does.
  bool hasSpecials(bool ofLanesAlone);
  /// Lanes per vector: registers enough to hide how long a chain of operations takes, but no wider than the loop.
  int64_t chooseLanes(VectorShape shape);
  /// Parallel loops outside, reduced ones inside, the vector dim first or last of its kind: last, so that memory is
  /// met row by row, first, so that what changes along the lanes alone is computed once for all rows.
  void orderLoops(bool lanesFirst);
  /// For each op the number of loops around it, as few as the dims that it changes along allow.
  void findLevels();
  /// The accumulators that take the larger or smaller of two floats. With what is asked of NaN such an op is three
  /// instructions that wait for each other; apart, the extremum of what can be ordered is one, and whether there was a
  /// NaN, where it matters, another.
  void findExtrema();

  tile::ComputeOp compute;
  llvm::DenseMap<mlir::Operation *, llvm::SmallBitVector> dependences;
};

} // namespace tilewright

#endif
