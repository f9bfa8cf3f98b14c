// Logarithms: the bits of x give x = 2^e (1 + f), and a polynomial in f approximates ln(1 + f). The inverse hyperbolic
// functions, which are computed from logarithms, and rsqrt follow.
#include "passes/codegen/common/VectorMath.h"
#include "passes/codegen/common/VectorMathTables.h"

#include "llvm/ADT/SmallVector.h"
#include <limits>

namespace tilewright::vecmath {
namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kLeastNormal = 0x1p-126;
constexpr uint64_t kRootOfHalf = 0x3F3504F3, kExponent = 0xFF800000, kFour = 0x40800000;

/// A base of logarithms: `perLn` is 1 / ln base, and high + low is ln 2 / ln base. Products of `high` with exponents
/// are exact.
struct Base {
  double perLn, high, low;
};
constexpr Base kNatural = {1.0, 0.693145751953125, 1.42860682030941723212e-6};
constexpr Base kTwo = {1.44269504088896340736, 1.0, 0.0};
constexpr Base kTen = {0.43429448190325182765, 0.301025390625, 4.60503898119521373889e-6};

/// Returns e ln 2 + ln(1 + f).
Num natural(Binary x) {
  Num small = fma(x.f * x.f, horner(x.f, kLog), fma(x.e, kNatural.low, x.f));
  return fma(x.e, kNatural.high, small);
}

/// Returns (e ln 2 + ln(1 + f) + rest) / ln base. The rounding errors of the leading terms and of their sum are added
/// to the rest of the series.
Num compensated(Binary x, Num rest, const Base &base) {
  float perLn = base.perLn;
  llvm::SmallVector<float> coefficients = {float(base.perLn - perLn)};
  for (float coefficient : kLog)
    coefficients.push_back(coefficient * base.perLn);
  Num ofE = x.e * base.high, ofF = x.f * perLn;
  Num large = ofE + ofF;
  Num lost = ofE - large + ofF + rest;
  return large + fma(x.f, horner(x.f, coefficients), fma(x.e, base.low, lost));
}

/// Returns the logarithm to the base, corrected by the rounding error of f / ln base.
Num toBase(Binary x, const Base &base) {
  float perLn = base.perLn;
  return compensated(x, fma(x.f, perLn, -(x.f * perLn)), base);
}

/// Selects the results for zero, negative numbers, infinity and NaN.
Num withLimits(Num x, Num regular) {
  Num positive = select(less(x, kInfinity), regular, x);
  return select(equal(x, 0.0), x.like(-kInfinity), select(less(x, 0.0), x.like(kNan), positive));
}

} // namespace

Binary splitBinary(Num x) {
  Num tiny = less(x, kLeastNormal);
  Num bits = select(tiny, x * 0x1p23, x).bits();
  Num above = bits - bits.likeBits(kRootOfHalf);
  Num f = (bits - (above & above.likeBits(kExponent))).real() - 1.0;
  Num e = shiftSigned(above, 23).toFloat() - select(tiny, x.like(23.0), x.like(0.0));
  return {e, f};
}

Num log(Num x) { return withLimits(x, natural(splitBinary(x))); }
Num log2(Num x) { return withLimits(x, toBase(splitBinary(x), kTwo)); }
Num log10(Num x) { return withLimits(x, toBase(splitBinary(x), kTen)); }

/// The sum 1 + x is rounded, so only its exponent e is used: 1 + f = 2^-e x + 2^-e.
Num log1p(Num x) {
  Num sum = x + 1.0;
  Num above = sum.bits() - sum.bits().likeBits(kRootOfHalf);
  Num exponent = above & above.likeBits(kExponent);
  Num fourth = (above.likeBits(kFour) - exponent).real(); // 2^(2 - e), normal up to the largest e
  Num ofOne = fma(fourth, 0.25, -1.0), ofX = (x.bits() - exponent).real();
  Num f = ofOne + ofX, lost = ofOne - f + ofX;
  Binary split = {shiftSigned(above, 23).toFloat(), f};
  Num regular = select(less(sum, kInfinity), compensated(split, fma(-f, lost, lost), kNatural), sum);
  Num limited = select(equal(x, -1.0), x.like(-kInfinity), select(less(x, -1.0), x.like(kNan), regular));
  return select(less(abs(x), 0x1p-25), x, limited);
}

namespace {
constexpr double kLn2 = 0.69314718055994530942;
/// From this argument on, asinh x and acosh x are ln 2x. Below it, the square of x does not overflow.
constexpr double kLarge = 0x1p30;

/// Returns ln(1 + argument) if x is below kLarge, and ln 2x otherwise.
Num logOfSum(Num x, Num argument) {
  Num large = less(kLarge, x);
  return log1p(select(large, x, argument)) + select(large, x.like(kLn2), x.like(0.0));
}
} // namespace

Num asinh(Num x) {
  Num a = abs(x), square = a * a;
  return copySign(logOfSum(a, a + square / (squareRoot(square + 1.0) + 1.0)), x);
}

Num acosh(Num x) {
  Num t = x - 1.0;
  return select(less(x, 1.0), x.like(kNan), logOfSum(x, t + squareRoot(fma(t, t, t + t))));
}

Num atanh(Num x) {
  Num a = abs(x);
  return copySign(log1p((a + a) / (x.like(1.0) - a)) * 0.5, x);
}

/// Corrects the two roundings of 1 / sqrt x by one Newton step. The product x y is computed in two parts.
Num rsqrt(Num x) {
  Num y = x.like(1.0) / squareRoot(x);
  Num minusY = -y;
  Num high = x * y, low = fma(x, y, -high);
  Num off = fma(low, minusY, fma(high, minusY, 1.0));
  return select(less(0.0, x) & less(x, kInfinity), fma(y * 0.5, off, y), y);
}
} // namespace tilewright::vecmath
