// Powers: pow x y = 2^(y log2 |x|). The logarithm and the product are computed in f64, where their errors of about
// 2^-35 do not matter. The special cases of IEEE 754 follow. The cube root is computed as a power, too.
#include "passes/codegen/common/VectorMath.h"
#include "passes/codegen/common/VectorMathTables.h"

#include <limits>

namespace tilewright::vecmath {
namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
/// 1.5 * 2^52. Adding it to an f64 rounds to an integer.
constexpr double kRounder = 6755399441055744.0;

/// Returns log2 x for x >= 0, in f64.
Num wideLog2(Num x) {
  auto [e, f] = splitBinary(x);
  Num limited = select(equal(x, 0.0), x.like(-kInfinity), select(less(x, kInfinity), e, x));
  Num wide = f.toWide();
  return fma(wide, horner(wide, kWideLog2), limited.toWide());
}

/// Returns 2^t in f32, for t in f64.
Num narrowExp2(Num t) {
  Num bounded = atMost(atLeast(t, -155.0), 155.0);
  Num whole = bounded + kRounder - kRounder;
  return scaled(exp2NearZero((bounded - whole).toNarrow()), wholeOf(whole.toNarrow()));
}
} // namespace

Num cbrt(Num x) { return copySign(narrowExp2(wideLog2(abs(x)) * (1.0 / 3.0)), x); }

Num pow(Num x, Num y) {
  Num size = abs(x), one = x.like(1.0);
  Num power = narrowExp2(y.toWide() * wideLog2(size));
  Num whole = equal(truncate(y), y); // true for infinities too, which count as even
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
