// The algebra of quasi-affine accesses over box domains 0 <= d_i < extents[i]: bounds, range-aware simplification
// (MLIR's own does not use the ranges, so (d0 * 64 + d1) floordiv 64 would never become d0), composition and guards.
// Everything is exact or conservative and says which; property tests enumerate small domains.
#ifndef TILEWRIGHT_SUPPORT_AFFINEALGEBRA_H
#define TILEWRIGHT_SUPPORT_AFFINEALGEBRA_H

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/IntegerSet.h"

namespace tilewright {

/// Of integers, both ends included.
struct Interval {
  int64_t low, high;
  int64_t size() const { return high - low + 1; }
  bool operator==(const Interval &other) const { return low == other.low && high == other.high; }
};

/// Conservative bounds of `expr` (no symbols) when dim i ranges over `ranges[i]`; exact for linear expressions in which
/// each dim occurs once.
Interval boundExpr(mlir::AffineExpr expr, llvm::ArrayRef<Interval> ranges);
llvm::SmallVector<Interval> domainRanges(llvm::ArrayRef<int64_t> extents);

/// An expression equal to `expr` on the whole domain, simpler where the ranges allow it (mod and division that never
/// wrap or divide evenly, dims of extent 1).
mlir::AffineExpr simplifyInDomain(mlir::AffineExpr expr, llvm::ArrayRef<int64_t> extents);
mlir::AffineMap simplifyInDomain(mlir::AffineMap map, llvm::ArrayRef<int64_t> extents);
mlir::AffineExpr simplifyInDomain(mlir::AffineExpr expr, llvm::ArrayRef<Interval> ranges);
mlir::AffineMap simplifyInDomain(mlir::AffineMap map, llvm::ArrayRef<Interval> ranges);

/// inner maps domain -> middle, outer maps middle -> anything; the composition, simplified in the domain.
mlir::AffineMap composeInDomain(mlir::AffineMap outer, mlir::AffineMap inner, llvm::ArrayRef<int64_t> extents);
mlir::AffineMap composeInDomain(mlir::AffineMap outer, mlir::AffineMap inner, llvm::ArrayRef<Interval> ranges);

/// The points of the domain that `inner` maps into `set`. Null stands for "everywhere", in and out.
mlir::IntegerSet composeInDomain(mlir::IntegerSet set, mlir::AffineMap inner, llvm::ArrayRef<int64_t> extents);

/// The dim that is the last index as it is, and in no other: its neighbours lie together, in lines of all its points.
/// -1: none does.
int64_t dimOfLines(mlir::AffineMap map);

/// The conjunction; null is "everywhere". Constraints that always hold in the domain are dropped.
mlir::IntegerSet conjoin(mlir::IntegerSet a, mlir::IntegerSet b, llvm::ArrayRef<int64_t> extents);

/// Whether `a` lies inside `b`, as far as this shows from b's constraints standing among a's. False may mean "unknown".
bool implies(mlir::IntegerSet a, mlir::IntegerSet b);

/// Whether of `run` neighbours along the dim, from a multiple of that on, always all or none are in the set, other dims
/// being anywhere. False may mean "unknown".
bool holdsByRuns(mlir::IntegerSet set, unsigned dim, int64_t run);

/// A box around the points of the domain where the guard (null: everywhere) holds.
llvm::SmallVector<Interval> guardedRanges(mlir::IntegerSet guard, llvm::ArrayRef<int64_t> extents);

/// Source index as a function of result index for a row-major reshape of `sourceShape` to `resultShape`.
mlir::AffineMap reshapeMap(mlir::MLIRContext *context, llvm::ArrayRef<int64_t> sourceShape,
                           llvm::ArrayRef<int64_t> resultShape);

/// The dims that the map depends on, in the order in which what they read lies: result after result, and within one by
/// how far a step along the dim leads.
llvm::SmallVector<int64_t> dimsAsTheyLie(mlir::AffineMap map, llvm::ArrayRef<int64_t> extents);

/// Whether loops over these dims, nested in their order, read the same elements again: one that the access does not
/// depend on stands around one that it depends on.
bool isReadAgain(mlir::AffineMap map, llvm::ArrayRef<int64_t> loops);

} // namespace tilewright

#endif
