// Sine, cosine and tangent: |x| is split into q pi/2 + r, and polynomials in r approximate the functions. Up to kNear,
// the reduction uses pi/2 as a sum of three floats (Cody and Waite). Above it, the product with 2/pi is computed in
// integers, modulo 4 and to 64 bits (Payne and Hanek). A branch skips that code unless a lane needs it.
#include "passes/codegen/common/VectorMath.h"
#include "passes/codegen/common/VectorMathTables.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include <limits>

using namespace mlir;

namespace tilewright::vecmath {
namespace {
constexpr double kNear = 0x1p16, kInfinity = std::numeric_limits<double>::infinity();
constexpr double kInHalfPis = 0.63661977236758134308, kHalfPiWide = 1.57079632679489661923;
constexpr uint64_t kSign = 0x80000000;

/// The reduced argument: |x| = q pi/2 + r. Only the two low bits of q matter.
struct Reduced {
  Num q, r;
};

Reduced reduceNear(Num x) {
  Whole n = nearest(x, kInHalfPis);
  Num r = x;
  for (double part : kHalfPi)
    r = fma(n.value, -part, r);
  return {n.bits, r};
}

/// Returns the word of 2/pi that is `later` (below 4) words after an index below 5, as i64.
Num wordAt(Num index, unsigned later) {
  Num word = index.likeBits(kTwoOverPi[4 + later]);
  for (unsigned i = 0; i < 4; ++i)
    word = select(equal(index, i), index.likeBits(kTwoOverPi[i + later]), word);
  return word.toWide();
}

/// Reduces an argument with 2^16 <= x < infinity, where x = m 2^e and m has 24 bits. The product leaves out the bits of
/// 2/pi that contribute multiples of 4, and uses the 96 bits below them.
Reduced reduceFar(Num x) {
  Num bits = x.bits();
  Num m = ((bits & bits.likeBits(0x7FFFFF)) | bits.likeBits(0x800000)).toWide();
  Num first = shiftRight(bits, 23) - 120; // position of the bit of weight 2: exponent - 151, 31 bits above the point
  Num index = shiftRight(first, 5), shift = (first & first.likeBits(31)).toWide();
  auto window = [&](unsigned later) {
    return shiftRight(shiftLeft(shiftLeft(wordAt(index, later), 32) | wordAt(index, later + 1), shift), 32);
  };
  Num turns = shiftLeft(m * window(0), 32) + m * window(1) + shiftRight(m * window(2), 32); // unit: 2^-62 quarter turn
  Num q = shiftRight(turns + turns.likeBits(uint64_t(1) << 61), 62);
  Num rest = turns - shiftLeft(q, 62);
  return {q.toNarrow(), (rest.toFloat() * (kHalfPiWide * 0x1p-62)).toNarrow()};
}

/// Reduces an argument x >= 0.
Reduced reduce(Num x) {
  Reduced near = reduceNear(x);
  Num far = less(kNear, x) & less(x, kInfinity);
  const Emitter &at = x.where();
  auto corrected = scf::IfOp::create(
      at.builder, at.loc, any(far),
      [&](OpBuilder &builder, Location loc) {
        Emitter inside{builder, loc, at.scalef};
        Reduced exact = reduceFar({inside, x.get()});
        Num q = select({inside, far.get()}, exact.q, {inside, near.q.get()});
        Num r = select({inside, far.get()}, exact.r, {inside, near.r.get()});
        scf::YieldOp::create(builder, loc, {q.get(), r.get()});
      },
      [&](OpBuilder &builder, Location loc) { scf::YieldOp::create(builder, loc, {near.q.get(), near.r.get()}); });
  return {{at, corrected.getResult(0)}, {at, corrected.getResult(1)}};
}

Num sinNearZero(Num r) {
  Num square = r * r;
  return fma(r * square, horner(square, kSin), r);
}

Num cosNearZero(Num r) {
  Num square = r * r;
  return fma(square, fma(square, horner(square, kCos), -0.5), 1.0);
}

Num isOdd(Num q) { return equal(q & q.likeBits(1), 1); }

/// Returns sin(q pi/2 + r).
Num sinOf(Reduced x) {
  Num size = select(isOdd(x.q), cosNearZero(x.r), sinNearZero(x.r));
  Num sign = shiftLeft(x.q & x.q.likeBits(2), 30);
  return (size.bits() ^ sign).real();
}

/// Flips the sign of the value if `x` is negative.
Num flip(Num value, Num x) { return (value.bits() ^ (x.bits() & x.bits().likeBits(kSign))).real(); }
} // namespace

Num sin(Num x) { return flip(sinOf(reduce(abs(x))), x); }

Num cos(Num x) {
  Reduced reduced = reduce(abs(x));
  return sinOf({reduced.q + 1, reduced.r});
}

Num tan(Num x) {
  auto [q, r] = reduce(abs(x));
  Num sine = sinNearZero(r), cosine = cosNearZero(r), odd = isOdd(q);
  return flip(select(odd, -cosine, sine) / select(odd, sine, cosine), x);
}
} // namespace tilewright::vecmath
