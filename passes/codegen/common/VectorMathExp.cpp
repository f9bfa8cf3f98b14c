// Exponentials: x = n ln 2 + r, a polynomial in r, and 2^n from the bits of n. The functions made of them follow.
#include "passes/codegen/common/VectorMath.h"
#include "passes/codegen/common/VectorMathTables.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tilewright::vecmath {
namespace {
constexpr double kLog2E = 1.44269504088896340736, kLn2 = 0.69314718055994530942;
/// ln 2 in two floats; the first has 9 zeros at its end, so that its product with n is exact.
constexpr double kLn2High = 0.693145751953125, kLn2Low = 1.42860682030941723212e-6;

/// From here on even exp(x) / 2 is infinite, while 2^(n - 2) is not yet.
constexpr double kOverflow = 89.5;

/// Up to here expm1 takes n = 0: with n = 1 or -1 and an r of the other sign, the one would cancel.
constexpr double kNear = 0.69;
/// The same for tanh, where the error counts for less.
constexpr double kNearTanh = 0.28;

/// x - n ln 2.
Num remainder(Num x, Whole n) { return fma(n.value, -kLn2Low, fma(n.value, -kLn2High, x)); }

/// An element at a time: the instruction is a thread's own.
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

/// exp r for |r| <= ln 2 / 2.
Num expNearZero(Num r) { return fma(r, fma(r, horner(r, kExp), 1.0), 1.0); }

/// (exp x - 1) / 4, which overflows only where sinh x does as well.
Num quarterExpm1(Num x) {
  Num bounded = atMost(atLeast(x, -18.0), kOverflow), near = less(abs(x), kNear);
  Whole n = zeroWhere(near, nearest(bounded, kLog2E));
  Num r = remainder(bounded, n);
  Num p = fma(r * r, horner(r, kExpM1), r);
  Num power = powerOfTwo(n, -2), rest = power - 0.25;
  Num lost = power - rest - 0.25; // at n = 25 half an ulp
  return fma(p, power, lost) + rest;
}
} // namespace

Num exp(Num x) { return x.where().ex2 ? exp2Instruction(x * kLog2E) : expOfSmall(atMost(x, 89.0)); }

Num expOfSmall(Num x) {
  Num bounded = atLeast(x, -104.0);
  Whole n = nearest(bounded, kLog2E);
  return scaled(expNearZero(remainder(bounded, n)), n);
}

Num expForBf16(Num x) {
  if (x.where().ex2)
    return exp(x);
  Num bounded = atLeast(x, -104.0);
  Whole n = nearest(bounded, kLog2E);
  Num r = fma(bounded, kLog2E, -n.value);
  return scaled(fma(r, horner(r, kExp2ForBf16), 1.0), n);
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
  // x itself where it is so small that halving it may lose bits; -0 too.
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

/// u / (u + 2) with u = expm1 2x = 2^n p + (2^n - 1). Near zero u = 2x + x^2 q, and the quotient is x + x (x q - u) /
/// (u + 2), where roundings of u count for little.
Num tanh(Num x) {
  Num a = atMost(abs(x), 9.1), near = less(a, kNearTanh);
  Whole n = zeroWhere(near, nearest(a, 2 * kLog2E));
  Num r = fma(n.value, -kLn2 / 2, a); // half of the remainder; n is small
  Num q = horner(r, kExp2xM1);
  Num power = powerOfTwo(n, 0);
  Num u = fma(fma(r * r, q, r + r), power, power - 1.0);
  Num quotient = select(near, a * fma(a, q, -u), u) / (u + 2.0);
  return copySign(select(near, a, a.like(0.0)) + quotient, x);
}

/// Where exp overflows, the result is below the smallest normal float, and becomes zero.
Num timesSigmoid(Num factor, Num negated) { return factor / (exp(negated) + 1.0); }
Num timesTwiceSigmoid(Num factor, Num negated) { return factor / fma(exp(negated), 0.5, 0.5); }

/// The root of erfc is flat enough for a short polynomial, and the powers damp its error.
Num erf(Num x) {
  Num a = abs(x), square = a * a;
  Num small = fma(a, horner(square, kErf), a);
  Num root = horner(atMost(a, 3.93), kErfcRoot);
  Num fourth = root * root * (root * root);
  Num large = fma(fourth, -fourth, 1.0);
  return copySign(select(less(a, 1.0), small, large), x);
}
} // namespace tilewright::vecmath
