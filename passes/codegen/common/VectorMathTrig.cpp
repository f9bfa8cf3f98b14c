// Sine, cosine, tangent: |x| = q pi/2 + r, polynomials in r. Up to kNear, pi/2 in three floats is enough (Cody and
// Waite); past it the product with 2/pi is taken in integers, modulo 4 and to 64 bits (Payne and Hanek). That code is
// skipped unless a lane needs it.
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

/// |x| = q pi/2 + r; only the two low bits of q count.
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

/// The word of 2/pi at an index below 5, and `later` (below 4) words on, as i64.
Num wordAt(Num index, unsigned later) {
  Num word = index.likeBits(kTwoOverPi[4 + later]);
  for (unsigned i = 0; i < 4; ++i)
    word = select(equal(index, i), index.likeBits(kTwoOverPi[i + later]), word);
  return word.toWide();
}

/// For 2^16 <= x < infinity, that is x = m 2^e with m in 24 bits. Bits of 2/pi that weigh 4 and more are left out of
/// the product, those below them are taken 96 at a time.
Reduced reduceFar(Num x) {
  Num bits = x.bits();
  Num m = ((bits & bits.likeBits(0x7FFFFF)) | bits.likeBits(0x800000)).toWide();
  Num first = shiftRight(bits, 23) - 120; // where the bit that weighs 2 is: exponent - 151, 31 bits above the point
  Num index = shiftRight(first, 5), shift = (first & first.likeBits(31)).toWide();
  auto window = [&](unsigned later) {
    return shiftRight(shiftLeft(shiftLeft(wordAt(index, later), 32) | wordAt(index, later + 1), shift), 32);
  };
  Num turns = shiftLeft(m * window(0), 32) + m * window(1) + shiftRight(m * window(2), 32); // of 2^-62 quarter turns
  Num q = shiftRight(turns + turns.likeBits(uint64_t(1) << 61), 62);
  Num rest = turns - shiftLeft(q, 62);
  return {q.toNarrow(), (rest.toFloat() * (kHalfPiWide * 0x1p-62)).toNarrow()};
}

/// For x >= 0.
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

/// sin(q pi/2 + r).
Num sinOf(Reduced x) {
  Num size = select(isOdd(x.q), cosNearZero(x.r), sinNearZero(x.r));
  Num sign = shiftLeft(x.q & x.q.likeBits(2), 30);
  return (size.bits() ^ sign).real();
}

/// The same with the sign of `x` taken off or put on.
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
