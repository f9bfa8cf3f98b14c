// Exponentials: x is split into n ln 2 + r, a polynomial approximates exp r, and the bits of n give 2^n. The functions
// that are computed from exponentials follow: expm1, hyperbolic functions, sigmoids and erf.
#include "passes/codegen/common/VectorMath.h"
#include "passes/codegen/common/VectorMathTables.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tilewright::vecmath {
namespace {
constexpr double kLog2E = 1.44269504088896340736, kLn2 = 0.69314718055994530942;
/// ln 2 as the sum of two floats. The first ends with 9 zero bits, so that its product with n is exact.
constexpr double kLn2High = 0.693145751953125, kLn2Low = 1.42860682030941723212e-6;

/// From this argument on, exp(x) / 2 is infinite, but 2^(n - 2) is still finite.
constexpr double kOverflow = 89.5;

/// Below this argument, expm1 uses n = 0. With n = 1 or -1 and an r of the opposite sign, subtracting one would cancel.
constexpr double kNear = 0.69;
/// Below this argument, tanh uses n = 0. The bound is lower because the error matters less there.
constexpr double kNearTanh = 0.28;

/// Returns x - n ln 2.
Num remainder(Num x, Whole n) { return fma(n.value, -kLn2Low, fma(n.value, -kLn2High, x)); }

/// Returns 2^x with the GPU's instruction, one element at a time: in a thread, the instruction works on scalars.
Num exp2Instruction(Num x) {
  const Emitter &at = x.where();
  OpBuilder &builder = at.builder;
  auto ofOne = [&](Value element) -> Value {
    StringAttr name = builder.getStringAttr("llvm.nvvm.ex2.approx.ftz");
    return LLVM::CallIntrinsicOp::create(builder, at.loc, element.getType(), name, element).getResults();
  };
  auto vector = dyn_cast<VectorType>(x.get().getType());
  if (!vector)
    return {at, ofOne(x.get())};
  SmallVector<Value> powers;
  for (int64_t i = 0; i < vector.getNumElements(); ++i)
    powers.push_back(ofOne(vector::ExtractOp::create(builder, at.loc, x.get(), i)));
  return {at, vector::FromElementsOp::create(builder, at.loc, vector, powers)};
}

Whole zeroWhere(Num condition, Whole n) {
  return {select(condition, n.value.like(0.0), n.value), select(condition, n.bits.like(0.0), n.bits)};
}

/// Returns the least argument of an exponential that scaledOrZero() ends. Its result is zero: its n is -127 or less than
/// -149.
double leastScaled(Num x) { return hasScalef(x) ? -104.0 : -88.0; }

/// Returns exp r for |r| <= ln 2 / 2.
Num expNearZero(Num r) { return fma(r, fma(r, horner(r, kExp), 1.0), 1.0); }

/// Returns (exp x - 1) / 4, which overflows only where sinh x overflows as well.
Num quarterExpm1(Num x) {
  Num bounded = atMost(atLeast(x, -18.0), kOverflow), near = less(abs(x), kNear);
  Whole n = zeroWhere(near, nearest(bounded, kLog2E));
  Num r = remainder(bounded, n);
  Num p = fma(r * r, horner(r, kExpM1), r);
  Num power = powerOfTwo(n, -2), rest = power - 0.25;
  Num lost = power - rest - 0.25; // rounding error of `rest`: half an ulp at n = 25
  return fma(p, power, lost) + rest;
}
} // namespace

Num exp(Num x) {
  if (x.where().ex2)
    return exp2Instruction(x * kLog2E);
  Num bounded = atMost(atLeast(x, -104.0), 89.0);
  Whole n = nearest(bounded, kLog2E);
  return scaled(expNearZero(remainder(bounded, n)), n);
}

Num expOfSmall(Num x) {
  Num bounded = atLeast(x, leastScaled(x));
  Whole n = nearest(bounded, kLog2E);
  return scaledOrZero(expNearZero(remainder(bounded, n)), n);
}

Num expForBf16(Num x) {
  if (x.where().ex2)
    return exp(x);
  Num bounded = atLeast(x, leastScaled(x));
  Whole n = nearest(bounded, kLog2E);
  Num r = fma(bounded, kLog2E, -n.value);
  return scaledOrZero(fma(r, horner(r, kExp2ForBf16), 1.0), n);
}

Num exp2(Num x) {
  if (x.where().ex2)
    return exp2Instruction(x);
  Num bounded = atMost(atLeast(x, -151.0), 129.0);
  Whole n = nearest(bounded, 1.0);
  return scaled(exp2NearZero(bounded - n.value), n);
}

Num exp2NearZero(Num r) { return fma(r, horner(r, kExp2), 1.0); }

Num expm1(Num x) {
  // Return x itself if it is so small that a quarter of it may lose bits. This also keeps -0.
  return select(less(abs(x), 0x1p-25), x, quarterExpm1(x) * 4.0);
}

Num sinh(Num x) {
  Num quarter = quarterExpm1(abs(x));
  Num sum = fma(quarter, 2.0, quarter / fma(quarter, 2.0, 0.5));
  return select(less(abs(x), 0x1p-12), x, copySign(sum, x));
}

Num cosh(Num x) {
  Num bounded = atMost(abs(x), kOverflow);
  Whole n = nearest(bounded, kLog2E);
  Num half = expNearZero(remainder(bounded, n)) * powerOfTwo(n, -2) * 2.0;
  return half + half.like(0.25) / half;
}

/// Returns u / (u + 2) with u = expm1 2x = 2^n p + (2^n - 1). Near zero, u = 2x + x^2 q, and the quotient is computed
/// as x + x (x q - u) / (u + 2), in which the rounding error of u has little effect.
Num tanh(Num x) {
  Num a = atMost(abs(x), 9.1), near = less(a, kNearTanh);
  Whole n = zeroWhere(near, nearest(a, 2 * kLog2E));
  Num r = fma(n.value, -kLn2 / 2, a); // half of the remainder; n is small, so one float for ln 2 is enough
  Num q = horner(r, kExp2xM1);
  Num power = powerOfTwo(n, 0);
  Num u = fma(fma(r * r, q, r + r), power, power - 1.0);
  Num quotient = select(near, a * fma(a, q, -u), u) / (u + 2.0);
  return copySign(select(near, a, a.like(0.0)) + quotient, x);
}

/// If exp overflows, the result would be below the smallest normal float; it becomes zero.
Num timesSigmoid(Num factor, Num negated) { return factor / (exp(negated) + 1.0); }
Num timesTwiceSigmoid(Num factor, Num negated) { return factor / fma(exp(negated), 0.5, 0.5); }

/// Uses a polynomial for |x| < 1 and otherwise 1 - p(x)^8. The eighth root p of erfc is flat enough for a short
/// polynomial, and taking the power damps its error.
Num erf(Num x) {
  Num a = abs(x), square = a * a;
  Num small = fma(a, horner(square, kErf), a);
  Num root = horner(atMost(a, 3.93), kErfcRoot);
  Num fourth = root * root * (root * root);
  Num large = fma(fourth, -fourth, 1.0);
  return copySign(select(less(a, 1.0), small, large), x);
}
} // namespace tilewright::vecmath
