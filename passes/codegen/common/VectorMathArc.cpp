// Inverse trigonometric functions. Polynomials approximate them near zero, and symmetries give the rest of the circle.
#include "passes/codegen/common/VectorMath.h"
#include "passes/codegen/common/VectorMathTables.h"

#include <limits>

namespace tilewright::vecmath {
namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Returns asin x for |x| <= 1/2.
Num asinNearZero(Num x) {
  Num square = x * x;
  return fma(x * square, horner(square, kAsin), x);
}

/// Returns quarters * pi/2 - x.
Num quartersMinus(Num quarters, Num x) { return fma(quarters, kHalfPi[0], fma(quarters, kHalfPi[1], -x)); }

/// Returns the angle in [0, pi/2] of a point with coordinates >= 0.
Num firstQuadrant(Num y, Num x) {
  Num steep = less(x, y);
  Num low = select(steep, x, y), high = select(steep, y, x);
  Num ratio = select(equal(high, 0.0), high, select(equal(low, kInfinity), x.like(1.0), low / high));
  Num square = ratio * ratio;
  Num angle = fma(ratio * square, horner(square, kAtan), ratio);
  return select(steep, quartersMinus(x.like(1.0), angle), angle);
}
} // namespace

Num asin(Num x) {
  Num a = abs(x), high = less(0.5, a);
  Num root = squareRoot(fma(a, -0.5, 0.5));
  Num angle = asinNearZero(select(high, root, a));
  return copySign(select(high, quartersMinus(x.like(1.0), angle + angle), angle), x);
}

Num acos(Num x) {
  Num high = less(0.5, abs(x));
  Num angle = asinNearZero(select(high, squareRoot(fma(abs(x), -0.5, 0.5)), x));
  Num twice = angle + angle;
  return select(high, select(less(x, 0.0), quartersMinus(x.like(2.0), twice), twice),
                quartersMinus(x.like(1.0), angle));
}

Num atan(Num x) { return copySign(firstQuadrant(abs(x), x.like(1.0)), x); }

Num atan2(Num y, Num x) {
  Num angle = firstQuadrant(abs(y), abs(x));
  Num behind = less(copySign(x.like(1.0), x), 0.0);
  Num turned = select(behind, quartersMinus(x.like(2.0), angle), angle);
  return copySign(select(equal(x, x), select(equal(y, y), turned, y), x), y);
}
} // namespace tilewright::vecmath
