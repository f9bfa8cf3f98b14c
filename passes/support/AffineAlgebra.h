// The algebra of quasi-affine accesses over box domains 0 <= d_i < extents[i]: bounds, range-aware simplification,
// composition and guards. MLIR's own simplification does not use the ranges, so (d0 * 64 + d1) floordiv 64 would never
// become d0. Every function is exact or conservative and states which; property tests enumerate small domains.
#ifndef TILEWRIGHT_SUPPORT_AFFINEALGEBRA_H
#define TILEWRIGHT_SUPPORT_AFFINEALGEBRA_H

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/IntegerSet.h"

namespace tilewright {

/// An interval of integers that includes both ends.
struct Interval {
  int64_t low, high;
  int64_t size() const { return high - low + 1; }
  bool operator==(const Interval &other) const { return low == other.low && high == other.high; }
};

/// Returns conservative bounds of `expr` (no symbols) when dim i ranges over `ranges[i]`. They are exact for linear
/// expressions in which each dim occurs once.
Interval boundExpr(mlir::AffineExpr expr, llvm::ArrayRef<Interval> ranges);

/// Returns the exact range of an expression without symbols by computing it everywhere. Returns nothing if its dims have
/// more than `mostPoints` combinations. It knows how quotients of the same dims depend on each other, as in
/// `d0 - (d0 floordiv 7) * 7`, which may be written in ways that no rule recognises.
std::optional<Interval> enumeratedRange(mlir::AffineExpr expr, llvm::ArrayRef<Interval> ranges, int64_t mostPoints);
llvm::SmallVector<Interval> domainRanges(llvm::ArrayRef<int64_t> extents);

/// Returns an expression that equals `expr` on the whole domain and is simpler where the ranges allow it: mod and
/// division that never wrap or that divide evenly, and dims of extent 1.
mlir::AffineExpr simplifyInDomain(mlir::AffineExpr expr, llvm::ArrayRef<int64_t> extents);
mlir::AffineMap simplifyInDomain(mlir::AffineMap map, llvm::ArrayRef<int64_t> extents);
mlir::AffineExpr simplifyInDomain(mlir::AffineExpr expr, llvm::ArrayRef<Interval> ranges);
mlir::AffineMap simplifyInDomain(mlir::AffineMap map, llvm::ArrayRef<Interval> ranges);

/// Returns outer after inner, simplified in the domain. `inner` maps the domain to some space, and `outer` maps that
/// space to anything.
mlir::AffineMap composeInDomain(mlir::AffineMap outer, mlir::AffineMap inner, llvm::ArrayRef<int64_t> extents);
mlir::AffineMap composeInDomain(mlir::AffineMap outer, mlir::AffineMap inner, llvm::ArrayRef<Interval> ranges);

/// Returns the points of the domain that `inner` maps into `set`. A null set means "everywhere", as argument and as
/// result.
mlir::IntegerSet composeInDomain(mlir::IntegerSet set, mlir::AffineMap inner, llvm::ArrayRef<int64_t> extents);

/// Returns the dim that alone forms the last index and occurs in no other, so that its points are contiguous; -1 if
/// there is none.
int64_t dimOfLines(mlir::AffineMap map);

/// Returns the conjunction; null means "everywhere". Constraints that always hold in the domain are dropped.
mlir::IntegerSet conjoin(mlir::IntegerSet a, mlir::IntegerSet b, llvm::ArrayRef<int64_t> extents);

/// Returns true if `a` is known to lie inside `b`, because each of b's constraints is also one of a's. False may mean
/// "unknown".
bool implies(mlir::IntegerSet a, mlir::IntegerSet b);

/// Returns true if each aligned run of `run` neighbours along the dim is either completely inside the set or completely
/// outside, wherever the other dims are. False may mean "unknown".
bool holdsByRuns(mlir::IntegerSet set, unsigned dim, int64_t run);

/// Returns a box around the points of the domain where the guard (null: everywhere) holds.
llvm::SmallVector<Interval> guardedRanges(mlir::IntegerSet guard, llvm::ArrayRef<int64_t> extents);

/// Returns the source index as a function of the result index, for a row-major reshape of `sourceShape` to
/// `resultShape`.
mlir::AffineMap reshapeMap(mlir::MLIRContext *context, llvm::ArrayRef<int64_t> sourceShape,
                           llvm::ArrayRef<int64_t> resultShape);

/// Returns the dims that the map depends on in memory order: by result, and within a result by decreasing stride.
llvm::SmallVector<int64_t> dimsAsTheyLie(mlir::AffineMap map, llvm::ArrayRef<int64_t> extents);

/// Returns true if loops over these dims, nested in their order, read the same elements several times: a loop that the
/// access does not depend on surrounds one that it depends on.
bool isReadAgain(mlir::AffineMap map, llvm::ArrayRef<int64_t> loops);

/// Returns the dim if the quasi-affine expression is just that dim, else -1.
int64_t pureDim(mlir::AffineExpr expr);
/// Returns the dim that advances the expression by one (d, or d plus something else), or -1.
int64_t unitStrideDim(mlir::AffineExpr expr);

} // namespace tilewright

#endif
