// The normal form behind AffineAlgebra.h: a sum of terms, each a dim or a floor division of another sum. `x mod n` is
// written x - n * (x floordiv n), so that the halves of a reshape cancel when maps are composed. Mods are restored only
// when an expression is emitted, which also keeps the interval bounds tight. A Presburger library would be exact on
// more sets, but it cannot return a short quasi-affine map, which code is generated from.
#ifndef TILEWRIGHT_SUPPORT_AFFINESIMPLIFIER_H
#define TILEWRIGHT_SUPPORT_AFFINESIMPLIFIER_H

#include "passes/support/AffineAlgebra.h"

namespace tilewright {

/// Compares by structure alone, which gives a total order: equal sums are built in the same order everywhere.
int compare(mlir::AffineExpr a, mlir::AffineExpr b);

/// Applies interval arithmetic to the expression as it is written.
Interval intervalOf(mlir::AffineExpr expr, llvm::ArrayRef<Interval> ranges);

/// A constant plus a sum of coefficient * expr, sorted, without zero coefficients.
struct Sum {
  using Term = std::pair<mlir::AffineExpr, int64_t>;
  llvm::SmallVector<Term> terms;
  int64_t constant = 0;

  void add(mlir::AffineExpr expr, int64_t coefficient);
  void add(const Sum &other, int64_t factor);
  int64_t coefficient(mlir::AffineExpr expr) const;
  int64_t gcd() const;
};

class Simplifier {
public:
  /// `forBounds` makes expressions whose bounds are closer, but which take more instructions.
  Simplifier(mlir::MLIRContext *context, llvm::ArrayRef<Interval> ranges, bool forBounds = false)
      : context(context), ranges(ranges), forBounds(forBounds) {}

  Sum flatten(mlir::AffineExpr expr);
  mlir::AffineExpr emit(const Sum &sum) {
    return build(forBounds ? restoreDigits(restoreMods(sum)) : restoreMods(sum));
  }
  mlir::AffineExpr simplify(mlir::AffineExpr expr);
  Interval bound(const Sum &sum) { return intervalOf(emit(sum), ranges); }

private:
  Sum divide(Sum sum, int64_t n);
  bool dropLowDigits(Sum &rest, int64_t &n);
  Sum restoreMods(Sum sum);
  bool restoreMod(Sum &sum, mlir::AffineExpr quotient, Sum &mods);
  Sum restoreDigits(Sum sum);
  mlir::AffineExpr build(const Sum &sum);

  mlir::MLIRContext *context;
  llvm::ArrayRef<Interval> ranges;
  bool forBounds;
};

} // namespace tilewright

#endif
