// Logarithms: x = 2^e (1 + f) from the bits of x, and a polynomial in f; and what is made of them.
#include "passes/codegen/cpu/VectorMath.h"
#include "passes/codegen/cpu/VectorMathTables.h"

#include "llvm/ADT/STLExtras.h"
#include <limits>

namespace tilewright::vecmath {
namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kLeastNormal = 0x1p-126;
constexpr uint64_t kTwoThirds = 0x3F2AAAAB, kExponent = 0xFF800000;

/// A number in two floats.
struct Split {
  float high, low;
};
Split split(double number) {
  float high = number;
  return {high, float(number - high)};
}

/// x = 2^e (1 + f), 2/3 <= 1 + f < 4/3.
struct Reduced {
  Num e, f;
};

Reduced reduce(Num x) {
  Num tiny = less(x, kLeastNormal);
  Num bits = select(tiny, x * 0x1p23, x).bits();
  Num above = bits - bits.likeBits(kTwoThirds);
  Num f = (bits - (above & above.likeBits(kExponent))).real() - 1.0;
  Num e = shiftSigned(above, 23).toFloat() - select(tiny, x.like(23.0), x.like(0.0));
  return {e, f};
}

/// (e ln 2 + ln(1 + f)) / ln base. The large parts of the products come last and unrounded.
Num assemble(Reduced x, double perLn) {
  llvm::SmallVector<float> coefficients = llvm::map_to_vector(kLog, [&](float c) { return float(c * perLn); });
  Split ofF = split(perLn), ofE = split(perLn * 0.69314718055994530942);
  Num inner = horner(x.f, coefficients);
  Num small = x.f * (ofF.low == 0 ? x.f * inner : fma(x.f, inner, double(ofF.low)));
  if (ofE.low != 0)
    small = fma(x.e, double(ofE.low), small);
  return fma(x.e, double(ofE.high), fma(x.f, double(ofF.high), small));
}

/// The result at zero, below, at infinity and at NaN.
Num withLimits(Num x, Num regular) {
  Num positive = select(less(x, kInfinity), regular, x);
  return select(equal(x, 0.0), x.like(-kInfinity), select(less(x, 0.0), x.like(kNan), positive));
}

Num logarithm(Num x, double perLn) { return withLimits(x, assemble(reduce(x), perLn)); }
} // namespace

Num log(Num x) { return logarithm(x, 1.0); }
Num log2(Num x) { return logarithm(x, 1.44269504088896340736); }
Num log10(Num x) { return logarithm(x, 0.43429448190325182765); }

/// 1 + x rounds, so its exponent alone is taken from it: f = 2^-e x + (2^-e - 1).
Num log1p(Num x) {
  Num sum = x + 1.0;
  Num above = sum.bits() - sum.bits().likeBits(kTwoThirds);
  Num exponent = above & above.likeBits(kExponent);
  Num scale = (above.likeBits(0x3F800000) - exponent).real();
  Reduced reduced = {shiftSigned(above, 23).toFloat(), fma(x, scale, scale - 1.0)};
  Num regular = select(less(sum, kInfinity), assemble(reduced, 1.0), sum);
  Num limited = select(equal(x, -1.0), x.like(-kInfinity), select(less(x, -1.0), x.like(kNan), regular));
  return select(less(abs(x), 0x1p-25), x, limited);
}

Num rsqrt(Num x) { return x.like(1.0) / squareRoot(x); }
} // namespace tilewright::vecmath
