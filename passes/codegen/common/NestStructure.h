// The structure of a loop nest, which is decided before any of its code is emitted: the order of the loops, the number
// of lanes, the loop to which each op of the body belongs, and the accumulators that are extrema.
#ifndef TILEWRIGHT_CODEGEN_COMMON_NESTSTRUCTURE_H
#define TILEWRIGHT_CODEGEN_COMMON_NESTSTRUCTURE_H

#include "passes/codegen/common/NestEmitter.h"
#include "passes/support/OverlapsAlong.h"
#include "llvm/ADT/SmallBitVector.h"

namespace tilewright {

/// An accumulator that takes the larger or smaller of two floats.
struct Extremum {
  mlir::Operation *op; ///< op of the body that takes the maximum or minimum
  mlir::BlockArgument accumulator;
  mlir::Value value; ///< operand besides the accumulator
  bool takesNaN;     ///< true if NaN wins over every number; otherwise NaN loses
};

/// Returns the lanes of the smallest vector that has `points` elements: whole registers, or a power of two below one.
int64_t lanesFor(int64_t points, int64_t registerBytes);

struct NestStructure {
  /// If `threads` is null, one thread runs the nest. `lanes` is given for a nest that shares the loops of another one,
  /// and is then the number of lanes of the other one.
  NestStructure(tile::ComputeOp compute, VectorShape shape, const NestThreads *threads,
                std::optional<int64_t> lanes = std::nullopt);

  int64_t vectorDim, lanes = 1;
  llvm::SmallVector<int64_t> order;                         ///< loops, outermost first
  unsigned numParallel = 0;                                 ///< number of parallel loops, which are outermost
  /// Points of the last parallel loop that are reduced at once: neighbouring windows overlap, so that one load serves
  /// several of them.
  int64_t together = 1;
  llvm::DenseMap<mlir::Value, llvm::SmallBitVector> varies; ///< dims along which a value of the body changes
  llvm::DenseMap<mlir::Operation *, unsigned> levels;       ///< number of loops around an op
  llvm::DenseMap<mlir::Operation *, bool> vectorised;       ///< true for ops that change along the vector dim
  llvm::SmallVector<Extremum> extrema;                      ///< those in which NaN wins come first
  unsigned numFlags = 0;                                    ///< number of extrema in which NaN wins
  /// The accumulator that the body uses while it is being accumulated (online softmax), or -1.
  int64_t running = -1;
  llvm::SetVector<mlir::Operation *> relative; ///< ops that depend on the next value of `running`

private:
  /// Finds the dims along which each op and value of the body changes.
  void findDependences();
  /// Returns true if the lanes are not reduced and an op that takes many instructions changes along them. With
  /// `ofLanesAlone`, the op must change along no other dim, as the standard deviation of a column does.
  bool hasSpecials(bool ofLanesAlone);
  /// Chooses the number of lanes: enough registers to hide the latency of a chain of operations, but no more than the
  /// loop has points.
  int64_t chooseLanes(VectorShape shape);
  /// Orders the loops: parallel loops outside, reduced loops inside. The vector dim is the last of its kind, so that
  /// memory is accessed row by row, or the first, so that values that change along the lanes alone are computed once
  /// for all rows.
  void orderLoops(bool lanesFirst);
  /// Makes the last parallel loop one along which windows overlap, if all points of a window can be emitted one after
  /// another: a row of three points of four windows is six loads in place of twelve. An accumulator of each point is
  /// then a single register.
  void joinWindows(const VectorShape &shape);
  bool overlapsAlong(int64_t dim);
  /// Finds the smallest number of loops around each op that contains all dims along which it changes.
  void findLevels();
  /// Finds the accumulators that take the larger or smaller of two floats. With its treatment of NaN, such an op takes
  /// three dependent instructions. Separately, the extremum of ordinary numbers takes one, and the NaN flag, if it is
  /// needed, another one.
  void findExtrema();

  tile::ComputeOp compute;
  llvm::DenseMap<mlir::Operation *, llvm::SmallBitVector> dependences;
};

} // namespace tilewright

#endif
