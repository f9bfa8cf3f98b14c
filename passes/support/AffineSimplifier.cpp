// Normalization of affine expressions and its inverse. The header describes the normal form; AffineAlgebra.h says what
// it is used for.
#include "passes/support/AffineSimplifier.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;

namespace tilewright {
namespace {

int64_t floorDiv(int64_t a, int64_t b) { return llvm::divideFloorSigned(a, b); }

int64_t signOf(int64_t value) { return value < 0 ? -1 : 1; }

int64_t gcdOf(int64_t a, int64_t b) { return std::gcd(a < 0 ? -a : a, b < 0 ? -b : b); }

Interval modRange(Interval operand, int64_t n) {
  int64_t base = floorDiv(operand.low, n) * n;
  if (base == floorDiv(operand.high, n) * n)
    return {operand.low - base, operand.high - base};
  return {0, n - 1};
}
} // namespace

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

int compare(AffineExpr a, AffineExpr b) {
  if (a == b)
    return 0;
  if (a.getKind() != b.getKind()) {
    // Dims come first, then divisions and mods by kind.
    bool aDim = a.getKind() == AffineExprKind::DimId, bDim = b.getKind() == AffineExprKind::DimId;
    if (aDim != bDim)
      return aDim ? -1 : 1;
    return a.getKind() < b.getKind() ? -1 : 1;
  }
  if (auto dim = dyn_cast<AffineDimExpr>(a))
    return dim.getPosition() < cast<AffineDimExpr>(b).getPosition() ? -1 : 1;
  if (auto constant = dyn_cast<AffineConstantExpr>(a))
    return constant.getValue() < cast<AffineConstantExpr>(b).getValue() ? -1 : 1;
  auto left = cast<AffineBinaryOpExpr>(a), right = cast<AffineBinaryOpExpr>(b);
  if (int order = compare(left.getLHS(), right.getLHS()))
    return order;
  return compare(left.getRHS(), right.getRHS());
}

Interval intervalOf(AffineExpr expr, ArrayRef<Interval> ranges) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return ranges[dim.getPosition()];
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return {constant.getValue(), constant.getValue()};
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Interval lhs = intervalOf(binary.getLHS(), ranges);
  if (expr.getKind() == AffineExprKind::Add) {
    Interval rhs = intervalOf(binary.getRHS(), ranges);
    return {lhs.low + rhs.low, lhs.high + rhs.high};
  }
  int64_t n = cast<AffineConstantExpr>(binary.getRHS()).getValue();
  switch (expr.getKind()) {
  case AffineExprKind::Mul:
    return {std::min(lhs.low * n, lhs.high * n), std::max(lhs.low * n, lhs.high * n)};
  case AffineExprKind::FloorDiv:
    return {floorDiv(lhs.low, n), floorDiv(lhs.high, n)};
  case AffineExprKind::CeilDiv:
    return {llvm::divideCeilSigned(lhs.low, n), llvm::divideCeilSigned(lhs.high, n)};
  default:
    return modRange(lhs, n);
  }
}

void Sum::add(AffineExpr expr, int64_t coefficient) {
  auto at = llvm::lower_bound(terms, expr, [](const Term &t, AffineExpr e) { return compare(t.first, e) < 0; });
  if (at == terms.end() || at->first != expr)
    at = terms.insert(at, {expr, 0});
  at->second += coefficient;
  if (at->second == 0)
    terms.erase(at);
}

void Sum::add(const Sum &other, int64_t factor) {
  constant += other.constant * factor;
  for (auto [expr, coefficient] : other.terms)
    add(expr, coefficient * factor);
}

int64_t Sum::coefficient(AffineExpr expr) const {
  for (auto [other, coefficient] : terms)
    if (other == expr)
      return coefficient;
  return 0;
}

int64_t Sum::gcd() const {
  int64_t divisor = 0;
  for (auto [expr, coefficient] : terms)
    divisor = gcdOf(divisor, coefficient);
  return divisor;
}

//===----------------------------------------------------------------------===//
// Normalization
//===----------------------------------------------------------------------===//

Sum Simplifier::flatten(AffineExpr expr) {
  Sum sum;
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    Interval range = ranges[dim.getPosition()];
    if (range.low == range.high)
      sum.constant = range.low;
    else
      sum.add(expr, 1);
    return sum;
  }
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    sum.constant = constant.getValue();
    return sum;
  }
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Sum lhs = flatten(binary.getLHS());
  if (expr.getKind() == AffineExprKind::Add) {
    lhs.add(flatten(binary.getRHS()), 1);
    return lhs;
  }
  int64_t n = cast<AffineConstantExpr>(binary.getRHS()).getValue();
  switch (expr.getKind()) {
  case AffineExprKind::Mul:
    sum.add(lhs, n);
    return sum;
  case AffineExprKind::CeilDiv:
    lhs.constant += n - 1;
    return divide(std::move(lhs), n);
  case AffineExprKind::FloorDiv:
    return divide(std::move(lhs), n);
  default:
    sum = lhs;
    sum.add(divide(std::move(lhs), n), -n);
    return sum;
  }
}

AffineExpr Simplifier::simplify(AffineExpr expr) {
  // Most indices of tensors are dims and constants, which are sums of themselves.
  if (isa<AffineConstantExpr>(expr))
    return expr;
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    Interval range = ranges[dim.getPosition()];
    return range.low == range.high ? getAffineConstantExpr(range.low, context) : expr;
  }
  return emit(flatten(expr));
}

/// Returns sum floordiv n. Terms that divide evenly leave the division, and terms that cannot carry into it are
/// dropped.
Sum Simplifier::divide(Sum sum, int64_t n) {
  Sum quotient, rest;
  for (auto [expr, coefficient] : sum.terms) {
    // Division truncates, so that a small negative coefficient stays small.
    quotient.add(expr, coefficient / n);
    rest.add(expr, coefficient % n);
  }
  quotient.constant = floorDiv(sum.constant, n);
  rest.constant = sum.constant - quotient.constant * n;

  while (true) {
    Interval range = bound(rest);
    if (floorDiv(range.low, n) == floorDiv(range.high, n)) {
      quotient.constant += floorDiv(range.low, n);
      return quotient;
    }
    if (int64_t divisor = gcdOf(rest.gcd(), n); divisor > 1) {
      for (Sum::Term &term : rest.terms)
        term.second /= divisor;
      rest.constant = floorDiv(rest.constant, divisor);
      n /= divisor;
    } else if (!dropLowDigits(rest, n)) {
      break;
    }
    if (n == 1) {
      quotient.add(rest, 1);
      return quotient;
    }
  }

  // (s + x floordiv a) floordiv n equals (a * s + x) floordiv (a * n). A single division makes equal expressions look
  // equal.
  for (auto [expr, coefficient] : rest.terms) {
    if (expr.getKind() != AffineExprKind::FloorDiv || coefficient != 1)
      continue;
    auto inner = cast<AffineBinaryOpExpr>(expr);
    int64_t divisor = cast<AffineConstantExpr>(inner.getRHS()).getValue();
    Sum dividend = flatten(inner.getLHS());
    rest.add(expr, -1);
    dividend.add(rest, divisor);
    quotient.add(divide(std::move(dividend), n * divisor), 1);
    return quotient;
  }
  AffineExpr division = emit(rest).floorDiv(n);
  if (forBounds && division.getKind() != AffineExprKind::FloorDiv) // MLIR has taken terms out of it
    division = build(rest).floorDiv(n);
  quotient.add(division, 1);
  return quotient;
}

/// If g divides n, (g*a + b) floordiv n equals a floordiv (n/g) when b stays within one step of g.
bool Simplifier::dropLowDigits(Sum &rest, int64_t &n) {
  Sum restored = restoreMods(rest);
  SmallVector<int64_t> steps;
  for (auto [expr, coefficient] : restored.terms)
    if (int64_t step = gcdOf(coefficient, n); step > 1)
      steps.push_back(step);
  llvm::sort(steps, std::greater<int64_t>());
  for (int64_t step : steps) {
    Sum high, low;
    for (auto [expr, coefficient] : restored.terms) {
      if (coefficient % step == 0)
        high.add(flatten(expr), coefficient / step);
      else
        low.add(expr, coefficient);
    }
    low.constant = restored.constant;
    Interval range = intervalOf(build(low), ranges);
    if (floorDiv(range.low, step) != floorDiv(range.high, step))
      continue;
    high.constant += floorDiv(range.low, step);
    rest = std::move(high);
    n /= step;
    return true;
  }
  return false;
}

/// Writes c * (s floordiv n) + k * s, with opposite signs, as a multiple of s mod n. Small divisors come first, so that
/// the digits of a mixed-radix number appear in order.
Sum Simplifier::restoreMods(Sum sum) {
  Sum mods;
  for (bool changed = true; changed;) {
    changed = false;
    SmallVector<std::pair<int64_t, AffineExpr>> quotients;
    for (auto [expr, coefficient] : sum.terms)
      if (expr.getKind() == AffineExprKind::FloorDiv)
        quotients.push_back({cast<AffineConstantExpr>(cast<AffineBinaryOpExpr>(expr).getRHS()).getValue(), expr});
    llvm::sort(quotients, [](const auto &a, const auto &b) {
      return a.first != b.first ? a.first < b.first : compare(a.second, b.second) < 0;
    });
    for (auto [divisor, expr] : quotients)
      if ((changed = restoreMod(sum, expr, mods)))
        break;
  }
  sum.add(mods, 1);
  return sum;
}

bool Simplifier::restoreMod(Sum &sum, AffineExpr quotient, Sum &mods) {
  int64_t coefficient = sum.coefficient(quotient);
  auto division = cast<AffineBinaryOpExpr>(quotient);
  int64_t n = cast<AffineConstantExpr>(division.getRHS()).getValue();
  // Returns how often `dividend` can be taken out of the sum, with the sign opposite to the quotient's. It must be
  // contained often enough that the rest of the quotient no longer has the opposite sign.
  auto timesOf = [&](const Sum &dividend, int64_t modulus) {
    int64_t times = dividend.terms.empty() ? 0 : std::numeric_limits<int64_t>::max();
    for (auto [expr, unit] : dividend.terms) {
      int64_t present = -signOf(coefficient) * signOf(unit) * sum.coefficient(expr);
      times = std::min(times, std::max<int64_t>(present, 0) / std::abs(unit));
    }
    return times >= static_cast<int64_t>(llvm::divideCeil(std::abs(coefficient), modulus)) ? times : 0;
  };
  auto replace = [&](const Sum &dividend, AffineExpr value, int64_t modulus) {
    int64_t times = -signOf(coefficient) * timesOf(dividend, modulus);
    if (times == 0)
      return false;
    sum.add(dividend, -times);
    sum.add(quotient, times * modulus);
    mods.add(value % modulus, times);
    return true;
  };

  Sum dividend = flatten(division.getLHS());
  if (replace(dividend, division.getLHS(), n))
    return true;
  // x floordiv n equals (x floordiv a) floordiv m with a * m = n. The other terms show which m is worth a try: the
  // ratio of coefficients, or a division by a.
  for (auto [expr, present] : SmallVector<Sum::Term>(sum.terms)) {
    if (signOf(present) == signOf(coefficient))
      continue;
    SmallVector<int64_t> moduli = {std::abs(coefficient / present)};
    if (expr.getKind() == AffineExprKind::FloorDiv)
      moduli.push_back(n / cast<AffineConstantExpr>(cast<AffineBinaryOpExpr>(expr).getRHS()).getValue());
    for (int64_t modulus : moduli) {
      if (modulus <= 1)
        continue;
      int64_t scale = modulus / gcdOf(n, modulus), divisor = n * scale / modulus;
      if (divisor == n)
        continue;
      Sum scaled;
      scaled.add(dividend, scale);
      Sum digit = divisor == 1 ? scaled : divide(std::move(scaled), divisor);
      if (replace(digit, emit(digit), modulus))
        return true;
    }
  }
  return false;
}

/// Writes k * (s floordiv n) + k * m * t as k * ((s + n * m * t) floordiv n) where that dividend has closer bounds, as it
/// has if t is what s lacks for a mod: x floordiv 3 of x = d mod 16 is such a digit.
Sum Simplifier::restoreDigits(Sum sum) {
  for (auto [quotient, factor] : SmallVector<Sum::Term>(sum.terms)) {
    if (quotient.getKind() != AffineExprKind::FloorDiv)
      continue;
    auto division = cast<AffineBinaryOpExpr>(quotient);
    int64_t n = cast<AffineConstantExpr>(division.getRHS()).getValue();
    Sum dividend = flatten(division.getLHS());
    for (auto [term, coefficient] : SmallVector<Sum::Term>(sum.terms)) {
      if (term == quotient || coefficient % factor != 0)
        continue;
      Sum closer = dividend;
      closer.add(term, n * (coefficient / factor));
      if (bound(closer).size() >= bound(dividend).size())
        continue;
      sum.add(quotient, -factor);
      sum.add(term, -coefficient);
      sum.add(emit(closer).floorDiv(n), factor);
      return sum;
    }
  }
  return sum;
}

AffineExpr Simplifier::build(const Sum &sum) {
  AffineExpr expr = getAffineConstantExpr(0, context);
  for (auto [term, coefficient] : sum.terms)
    expr = expr + term * coefficient;
  return expr + sum.constant;
}

} // namespace tilewright
