// Sets are kept as few, normalized constraints in a canonical order, and maps are simplified result by result.
// AffineSimplifier does the work.
#include "passes/support/AffineAlgebra.h"

#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "passes/support/AffineSimplifier.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tilewright {
namespace {

/// One constraint in normal form: sum >= 0 or sum == 0.
struct Constraint {
  Sum sum;
  bool equality;
};

enum class Truth { always, sometimes, never };

/// (s floordiv n) >= m holds if s >= n * m, and (s floordiv n) <= m holds if s <= n * m + n - 1.
bool unwrapDivision(Constraint &constraint, Simplifier &simplifier) {
  Sum &sum = constraint.sum;
  if (constraint.equality || sum.terms.size() != 1 || std::abs(sum.terms[0].second) != 1 ||
      sum.terms[0].first.getKind() != AffineExprKind::FloorDiv)
    return false;
  auto division = cast<AffineBinaryOpExpr>(sum.terms[0].first);
  int64_t n = cast<AffineConstantExpr>(division.getRHS()).getValue(), sign = sum.terms[0].second;
  Sum unwrapped;
  unwrapped.constant = sum.constant * n + (sign < 0 ? n - 1 : 0);
  unwrapped.add(simplifier.flatten(division.getLHS()), sign);
  sum = std::move(unwrapped);
  return true;
}

Truth normalize(Constraint &constraint, Simplifier &simplifier) {
  Sum &sum = constraint.sum;
  do {
    int64_t divisor = sum.gcd();
    if (divisor > 1 && (!constraint.equality || sum.constant % divisor == 0)) {
      for (Sum::Term &term : sum.terms)
        term.second /= divisor;
      sum.constant = llvm::divideFloorSigned(sum.constant, divisor);
    } else if (divisor > 1) {
      return Truth::never;
    }
  } while (unwrapDivision(constraint, simplifier));
  Interval range = simplifier.bound(sum);
  if (range.high < 0 || (constraint.equality && range.low > 0))
    return Truth::never;
  bool always = constraint.equality ? range.low == 0 && range.high == 0 : range.low >= 0;
  return always ? Truth::always : Truth::sometimes;
}

/// Returns true if b's terms are `factor` times a's.
bool sameTerms(const Sum &a, const Sum &b, int64_t factor) {
  return a.terms.size() == b.terms.size() && llvm::all_of(llvm::zip(a.terms, b.terms), [&](auto pair) {
           auto &[left, right] = pair;
           return left.first == right.first && left.second * factor == right.second;
         });
}

/// Adds a constraint to the existing ones, keeping the tighter of two with the same terms.
Truth insert(SmallVector<Constraint> &constraints, Constraint constraint) {
  for (Constraint &other : constraints) {
    if (other.equality != constraint.equality)
      continue;
    if (sameTerms(other.sum, constraint.sum, 1)) {
      if (constraint.equality && other.sum.constant != constraint.sum.constant)
        return Truth::never;
      other.sum.constant = std::min(other.sum.constant, constraint.sum.constant);
      return Truth::sometimes;
    }
    if (!constraint.equality && sameTerms(other.sum, constraint.sum, -1) &&
        other.sum.constant + constraint.sum.constant < 0)
      return Truth::never;
  }
  constraints.push_back(std::move(constraint));
  return Truth::sometimes;
}

IntegerSet makeSet(ArrayRef<std::pair<AffineExpr, bool>> exprs, ArrayRef<Interval> ranges, MLIRContext *context) {
  Simplifier simplifier(context, ranges);
  SmallVector<Constraint> constraints;
  for (auto [expr, equality] : exprs) {
    Constraint constraint{simplifier.flatten(expr), equality};
    Truth truth = normalize(constraint, simplifier);
    if (truth == Truth::sometimes)
      truth = insert(constraints, std::move(constraint));
    if (truth == Truth::never)
      return IntegerSet::getEmptySet(ranges.size(), 0, context);
  }
  if (constraints.empty())
    return {};
  // A canonical order makes equal guards equal attributes.
  SmallVector<std::pair<AffineExpr, bool>> sorted;
  for (Constraint &constraint : constraints)
    sorted.push_back({simplifier.emit(constraint.sum), constraint.equality});
  llvm::sort(sorted, [](const auto &a, const auto &b) { return compare(a.first, b.first) < 0; });
  SmallVector<AffineExpr> results = llvm::to_vector(llvm::make_first_range(sorted));
  SmallVector<bool> equalities = llvm::to_vector(llvm::make_second_range(sorted));
  return IntegerSet::get(ranges.size(), 0, results, equalities);
}

void append(SmallVector<std::pair<AffineExpr, bool>> &exprs, IntegerSet set) {
  for (unsigned i = 0; i < set.getNumConstraints(); ++i)
    exprs.push_back({set.getConstraint(i), set.isEq(i)});
}
} // namespace

//===----------------------------------------------------------------------===//
// Interface
//===----------------------------------------------------------------------===//

static int64_t valueOf(AffineExpr expr, ArrayRef<int64_t> dims) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dims[dim.getPosition()];
  auto both = cast<AffineBinaryOpExpr>(expr);
  int64_t a = valueOf(both.getLHS(), dims), b = valueOf(both.getRHS(), dims);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return a + b;
  case AffineExprKind::Mul:
    return a * b;
  case AffineExprKind::Mod:
    return llvm::mod(a, b);
  case AffineExprKind::FloorDiv:
    return llvm::divideFloorSigned(a, b);
  case AffineExprKind::CeilDiv:
    return llvm::divideCeilSigned(a, b);
  default:
    llvm_unreachable("a constant or a dim");
  }
}

std::optional<Interval> enumeratedRange(AffineExpr expr, ArrayRef<Interval> ranges, int64_t mostPoints) {
  SmallVector<unsigned> used;
  int64_t points = 1;
  for (auto [dim, range] : llvm::enumerate(ranges))
    if (expr.isFunctionOfDim(dim)) {
      used.push_back(dim);
      if (range.high < range.low || llvm::MulOverflow(points, range.high - range.low + 1, points) || points > mostPoints)
        return std::nullopt;
    }
  SmallVector<int64_t> at = llvm::map_to_vector(ranges, [](const Interval &range) { return range.low; });
  int64_t first = valueOf(expr, at);
  Interval found{first, first};
  for (int64_t point = 0; point < points; ++point) {
    int64_t rest = point;
    for (unsigned dim : used) {
      int64_t size = ranges[dim].high - ranges[dim].low + 1;
      at[dim] = ranges[dim].low + rest % size;
      rest /= size;
    }
    int64_t value = valueOf(expr, at);
    found = {std::min(found.low, value), std::max(found.high, value)};
  }
  return found;
}

Interval boundExpr(AffineExpr expr, ArrayRef<Interval> ranges) {
  Interval written = intervalOf(expr, ranges);
  Interval simplified = intervalOf(Simplifier(expr.getContext(), ranges).simplify(expr), ranges);
  Interval closest = intervalOf(Simplifier(expr.getContext(), ranges, /*forBounds=*/true).simplify(expr), ranges);
  return {std::max({written.low, simplified.low, closest.low}),
          std::min({written.high, simplified.high, closest.high})};
}

SmallVector<Interval> domainRanges(ArrayRef<int64_t> extents) {
  return llvm::map_to_vector(extents, [](int64_t extent) { return Interval{0, extent - 1}; });
}

AffineExpr simplifyInDomain(AffineExpr expr, ArrayRef<Interval> ranges) {
  return Simplifier(expr.getContext(), ranges).simplify(expr);
}

AffineExpr simplifyInDomain(AffineExpr expr, ArrayRef<int64_t> extents) {
  return simplifyInDomain(expr, domainRanges(extents));
}

AffineMap simplifyInDomain(AffineMap map, ArrayRef<Interval> ranges) {
  SmallVector<AffineExpr> results;
  for (AffineExpr expr : map.getResults())
    results.push_back(simplifyInDomain(expr, ranges));
  return AffineMap::get(ranges.size(), 0, results, map.getContext());
}

AffineMap simplifyInDomain(AffineMap map, ArrayRef<int64_t> extents) {
  return simplifyInDomain(map, domainRanges(extents));
}

AffineMap composeInDomain(AffineMap outer, AffineMap inner, ArrayRef<Interval> ranges) {
  return simplifyInDomain(inner.isIdentity() ? outer : outer.compose(inner), ranges);
}

AffineMap composeInDomain(AffineMap outer, AffineMap inner, ArrayRef<int64_t> extents) {
  return composeInDomain(outer, inner, domainRanges(extents));
}

IntegerSet composeInDomain(IntegerSet set, AffineMap inner, ArrayRef<int64_t> extents) {
  if (!set)
    return {};
  SmallVector<std::pair<AffineExpr, bool>> exprs;
  for (unsigned i = 0; i < set.getNumConstraints(); ++i)
    exprs.push_back({set.getConstraint(i).replaceDims(inner.getResults()), set.isEq(i)});
  return makeSet(exprs, domainRanges(extents), set.getContext());
}

IntegerSet conjoin(IntegerSet a, IntegerSet b, ArrayRef<int64_t> extents) {
  if (!a && !b)
    return {};
  SmallVector<std::pair<AffineExpr, bool>> exprs;
  if (a)
    append(exprs, a);
  if (b)
    append(exprs, b);
  return makeSet(exprs, domainRanges(extents), (a ? a : b).getContext());
}

bool implies(IntegerSet a, IntegerSet b) {
  if (!b)
    return true;
  if (!a)
    return false;
  SmallVector<std::pair<AffineExpr, bool>> known;
  append(known, a);
  for (unsigned i = 0; i < b.getNumConstraints(); ++i)
    if (!llvm::is_contained(known, std::make_pair(b.getConstraint(i), b.isEq(i))))
      return false;
  return true;
}

bool holdsByRuns(IntegerSet set, unsigned dim, int64_t run) {
  return llvm::all_of(llvm::zip(set.getConstraints(), set.getEqFlags()), [&](auto constraint) {
    auto [expr, equality] = constraint;
    if (run == 1 || !expr.isFunctionOfDim(dim))
      return true;
    SmallVector<int64_t> terms;
    if (equality || failed(getFlattenedAffineExpr(expr, set.getNumDims(), set.getNumSymbols(), &terms)) ||
        terms.size() != set.getNumInputs() + 1)
      return false;
    // The truth value changes between runs: at the first point of a run if the constraint grows with the dim, else
    // after its last point.
    int64_t step = terms[dim];
    terms[dim] = 0;
    terms.back() += step > 0 ? 0 : 1;
    return std::abs(step) == 1 && llvm::all_of(terms, [&](int64_t term) { return term % run == 0; });
  });
}

SmallVector<Interval> guardedRanges(IntegerSet guard, ArrayRef<int64_t> extents) {
  SmallVector<Interval> ranges = domainRanges(extents);
  if (!guard)
    return ranges;
  for (unsigned i = 0; i < guard.getNumConstraints(); ++i) {
    Sum sum = Simplifier(guard.getContext(), ranges).flatten(guard.getConstraint(i));
    auto dim = sum.terms.size() == 1 ? dyn_cast<AffineDimExpr>(sum.terms[0].first) : AffineDimExpr(nullptr);
    if (!dim || guard.isEq(i))
      continue;
    // The constraint is c * d + k >= 0.
    Interval &range = ranges[dim.getPosition()];
    int64_t c = sum.terms[0].second;
    if (c > 0)
      range.low = std::max(range.low, -llvm::divideFloorSigned(sum.constant, c));
    else
      range.high = std::min(range.high, llvm::divideFloorSigned(sum.constant, -c));
    if (range.low > range.high) // the element is never read, so any range will do except an empty one
      return domainRanges(extents);
  }
  return ranges;
}

AffineMap reshapeMap(MLIRContext *context, ArrayRef<int64_t> sourceShape, ArrayRef<int64_t> resultShape) {
  AffineExpr linear = getAffineConstantExpr(0, context);
  for (auto [dim, extent] : llvm::enumerate(resultShape))
    linear = linear * extent + getAffineDimExpr(dim, context);
  SmallVector<AffineExpr> results(sourceShape.size());
  int64_t stride = 1;
  for (size_t dim = sourceShape.size(); dim-- > 0; stride *= sourceShape[dim])
    results[dim] = linear.floorDiv(stride) % sourceShape[dim];
  return simplifyInDomain(AffineMap::get(resultShape.size(), 0, results, context), resultShape);
}

SmallVector<int64_t> dimsAsTheyLie(AffineMap map, ArrayRef<int64_t> extents) {
  SmallVector<Interval> ranges = domainRanges(extents);
  Simplifier simplifier(map.getContext(), ranges);
  llvm::SmallSetVector<int64_t, 4> dims;
  for (AffineExpr expr : map.getResults()) {
    Sum sum = simplifier.flatten(expr);
    llvm::stable_sort(sum.terms,
                      [](const Sum::Term &a, const Sum::Term &b) { return std::abs(a.second) > std::abs(b.second); });
    for (const Sum::Term &term : sum.terms)
      for (size_t dim = 0; dim < extents.size(); ++dim)
        if (term.first.isFunctionOfDim(dim))
          dims.insert(dim);
  }
  return dims.takeVector();
}

bool isReadAgain(AffineMap map, ArrayRef<int64_t> loops) {
  auto innermost = llvm::find_if(llvm::reverse(loops), [&](int64_t dim) { return map.isFunctionOfDim(dim); });
  return std::any_of(innermost, loops.rend(), [&](int64_t dim) { return !map.isFunctionOfDim(dim); });
}

} // namespace tilewright

int64_t tilewright::dimOfLines(AffineMap map) {
  if (map.getNumResults() == 0)
    return -1;
  auto last = dyn_cast<AffineDimExpr>(map.getResults().back());
  bool isLine = last && llvm::none_of(map.getResults().drop_back(),
                                      [&](AffineExpr index) { return index.isFunctionOfDim(last.getPosition()); });
  return isLine ? static_cast<int64_t>(last.getPosition()) : -1;
}

int64_t tilewright::pureDim(AffineExpr expr) {
  auto dim = dyn_cast<AffineDimExpr>(expr);
  return dim ? static_cast<int64_t>(dim.getPosition()) : -1;
}

int64_t tilewright::unitStrideDim(AffineExpr expr) {
  if (int64_t dim = pureDim(expr); dim >= 0)
    return dim;
  auto sum = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!sum || sum.getKind() != AffineExprKind::Add)
    return -1;
  int64_t left = unitStrideDim(sum.getLHS());
  return left >= 0 ? left : unitStrideDim(sum.getRHS());
}
