// The access of a contraction to an operand: the dim along which neighbours are contiguous, and how many elements are
// aligned. The planner asks about an access of the graph, and passes on programs ask about a load. Everything here is a
// pure function.
#ifndef TILEWRIGHT_LAYOUT_OPERANDACCESS_H
#define TILEWRIGHT_LAYOUT_OPERANDACCESS_H

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/IntegerSet.h"

#include <string>

namespace tilewright {

/// An access to a dense tensor or buffer, in a nest whose dims have these tile sizes and extents.
struct OperandAccess {
  mlir::AffineMap map; ///< from the dims of the nest to the tensor; symbols are offsets of tiles
  llvm::ArrayRef<int64_t> shape;
  int64_t elementBytes;
  llvm::ArrayRef<int64_t> sizes, extents;
  mlir::IntegerSet guard = {}; ///< points that read an element; at others, it is zero. Null: all

  /// Returns true if neighbours along the dim are neighbours in memory.
  bool liesAlong(int64_t dim) const;
  /// Returns true if shared memory holds the operand with K innermost: threads read neighbours along K if that touches
  /// no more sectors than along `dim`. `dim` is M or N, or -1 if the operand has one point.
  bool liesByK(int64_t dim, int64_t k) const;
  /// Returns how many elements are contiguous along the dim and aligned to their number, from any multiple of that
  /// number on: a power of two, at most `most`.
  int64_t alignedElements(int64_t dim, int64_t most) const;
  /// Returns the same for any offset of the tile, such that each run lies completely inside or outside the tile.
  int64_t alignedRun(int64_t dim, int64_t most) const;
  /// Returns true if each aligned run of `run` neighbours along the dim is either completely inside the guard or
  /// completely outside. False may mean "unknown".
  bool isGuardedByRuns(int64_t dim, int64_t run) const;
  /// Returns how many elements are copied to shared memory at once: as many as are contiguous and aligned for any
  /// offset of the block, or 1 if those are fewer than cp.async copies. The slot has `points` of M or N, and `step` of K.
  int64_t copiedAtOnce(int64_t dim, int64_t k, int64_t points, int64_t step) const;
  /// Returns the bytes that a thread copies at once, at most. If `shifts`, a line may be copied from the piece on in
  /// which it begins (beginsInsideWords): a word if K is contiguous, else the widest copy.
  int64_t widestCopy(int64_t dim, int64_t k, int64_t points, int64_t step, bool shifts) const;
  /// Returns why a thread cannot copy so many bytes at once, or an empty string.
  std::string whyNotCopied(int64_t bytes, int64_t dim, int64_t k, int64_t points, int64_t step, bool shifts) const;
  /// Returns true if the operand has 16-bit elements and its lines may begin in the middle of a word.
  bool beginsInsideWords(int64_t dim, int64_t k) const;
};

/// Returns the reduced dim, of those that both operands share, that a contraction walks in steps: the first along which
/// an operand is contiguous, else the longest one.
int64_t steppedDim(llvm::ArrayRef<OperandAccess> operands, llvm::ArrayRef<int64_t> reduced);

} // namespace tilewright

#endif
