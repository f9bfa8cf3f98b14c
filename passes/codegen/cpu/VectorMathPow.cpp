// pow x y = 2^(y log2 |x|), in f64, where its error of about 2^-33 is far below an ulp of f32; then the cases of IEEE 754.
// The cube root is a power too.
#include "passes/codegen/cpu/VectorMath.h"
#include "passes/codegen/cpu/VectorMathTables.h"

#include <limits>

namespace tilewright::vecmath {
namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr uint64_t kRootOfHalf = 0x3FE6A09E667F3BCD, kExponent = 0xFFF0000000000000, kOneBits = 0x3FF0000000000000;
/// 1.5 2^52: adding it to an f64 rounds to a whole number, in its low bits.
constexpr double kRounder = 6755399441055744.0;

/// log2 of a positive f32 given as f64, where it is always a normal number; of zero and of infinity as well.
Num wideLog2(Num x) {
  Num above = x.bits() - x.bits().likeBits(kRootOfHalf);
  Num f = (x.bits() - (above & above.likeBits(kExponent))).real() - 1.0;
  Num e = shiftSigned(above, 52).toNarrow().toFloat().toWide();
  Num regular = fma(f, horner(f, kWideLog2), e);
  return select(equal(x, 0.0), x.like(-kInfinity), select(less(x, kInfinity), regular, x));
}

/// 2^t, beyond the range of f32 anything beyond it.
Num wideExp2(Num t) {
  Num bounded = atMost(atLeast(t, -200.0), 200.0);
  Num shifted = bounded + kRounder;
  Num power = (shiftLeft(shifted.bits(), 52) + shifted.bits().likeBits(kOneBits)).real();
  return horner(bounded - (shifted - kRounder), kWideExp2) * power;
}
} // namespace

Num cbrt(Num x) { return copySign(wideExp2(wideLog2(abs(x).toWide()) * (1.0 / 3.0)).toNarrow(), x); }

Num pow(Num x, Num y) {
  Num size = abs(x), one = x.like(1.0);
  Num power = wideExp2(y.toWide() * wideLog2(size.toWide())).toNarrow();
  Num whole = equal(truncate(y), y); // of infinities too, which are even
  Num half = y * 0.5;
  Num negative = (x.bits() & x.bits().likeBits(0x80000000));
  Num sign = select(equal(truncate(half), half), negative.like(0.0), negative);
  Num signedPower = select(whole, (power.bits() | sign).real(), power);
  Num undefined = less(x, 0.0) & less(-kInfinity, x);
  Num of = select(undefined, select(whole, signedPower, x.like(kNan)), signedPower);
  Num infiniteOfOne = equal(size, 1.0) & equal(abs(y), kInfinity);
  Num always = equal(x, 1.0) | equal(y, 0.0);
  return select(always | infiniteOfOne, one, of);
}
} // namespace tilewright::vecmath
