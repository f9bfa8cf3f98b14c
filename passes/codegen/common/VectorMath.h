// Emits transcendental functions on f32 scalars and vectors as arith, math.fma and integer arithmetic on the bits. They
// need no branches, no tables in memory and no libm. docs/reference/math.md has the error of each function.
//
// `Num` makes the emitting code read like the formula that it emits. Operands and results of a function have the same
// shape.
#ifndef TILEWRIGHT_CODEGEN_COMMON_VECTORMATH_H
#define TILEWRIGHT_CODEGEN_COMMON_VECTORMATH_H

#include "mlir/IR/Builders.h"

namespace tilewright::vecmath {

/// The insertion point of ops, and the target's instructions for exponentials.
struct Emitter {
  mlir::OpBuilder &builder;
  mlir::Location loc;
  bool scalef = false; ///< AVX-512 with VL computes 2^n x in one instruction, with gradual underflow
  bool ex2 = false;    ///< NVIDIA GPUs compute 2^x in one instruction, to 2 ulp, with zero for subnormal results
};

/// A scalar or vector of floats, integers or truth values, with the insertion point of ops on it.
class Num {
public:
  Num(const Emitter &emitter, mlir::Value value) : emitter(&emitter), value(value) {}

  const Emitter &where() const { return *emitter; }
  mlir::Value get() const { return value; }
  /// Return a constant of the same type, from a number or from its bits.
  Num like(double constant) const;
  Num likeBits(uint64_t constant) const;
  /// Bitcasts to integers or floats of the same width.
  Num bits() const;
  Num real() const;
  /// Conversions that keep the number.
  Num toFloat() const;  ///< i32 to f32, i64 to f64
  Num toWide() const;   ///< f32 to f64, i32 to i64 with zero extension
  Num toNarrow() const; ///< f64 to f32, i64 to i32 by truncation

private:
  const Emitter *emitter;
  mlir::Value value;
};

Num operator+(Num a, Num b);
Num operator-(Num a, Num b);
Num operator*(Num a, Num b);
Num operator/(Num a, Num b);
Num operator-(Num a);
Num operator&(Num a, Num b);
Num operator|(Num a, Num b);
Num operator^(Num a, Num b);
inline Num operator+(Num a, double b) { return a + a.like(b); }
inline Num operator-(Num a, double b) { return a - a.like(b); }
inline Num operator*(Num a, double b) { return a * a.like(b); }
Num shiftLeft(Num a, Num count);
Num shiftRight(Num a, Num count);  ///< logical shift
Num shiftSigned(Num a, int count); ///< arithmetic shift
inline Num shiftLeft(Num a, int count) { return shiftLeft(a, a.like(count)); }
inline Num shiftRight(Num a, int count) { return shiftRight(a, a.like(count)); }

/// Comparisons. A comparison of floats is false if one of them is NaN.
Num less(Num a, Num b);
Num equal(Num a, Num b);
inline Num less(Num a, double b) { return less(a, a.like(b)); }
inline Num less(double a, Num b) { return less(b.like(a), b); }
inline Num equal(Num a, double b) { return equal(a, a.like(b)); }
Num select(Num condition, Num a, Num b);
/// Returns an i1 that is true if a scalar condition holds, or a vector condition in any lane.
mlir::Value any(Num condition);

Num fma(Num a, Num b, Num c); ///< a b + c, rounded once
inline Num fma(Num a, double b, Num c) { return fma(a, a.like(b), c); }
inline Num fma(Num a, Num b, double c) { return fma(a, b, a.like(c)); }
inline Num fma(Num a, double b, double c) { return fma(a, a.like(b), a.like(c)); }
Num abs(Num x);
Num squareRoot(Num x);
Num truncate(Num x);
Num copySign(Num magnitude, Num sign);
/// Bound x by `low` from below or by `high` from above. NaN stays NaN. Each is one instruction on x86.
Num atLeast(Num x, double low);
Num atMost(Num x, double high);
/// Returns coefficients[0] + x (coefficients[1] + x (...)).
Num horner(Num x, llvm::ArrayRef<float> coefficients);
Num horner(Num x, llvm::ArrayRef<double> coefficients);
/// Returns 2^r for |r| <= 1/2.
Num exp2NearZero(Num r);

/// An integer, both as a float and in the low bits of an integer type.
struct Whole {
  Num value, bits;
};
/// Rounds x * scale to the nearest integer. The result is correct if its magnitude is below 2^22.
Whole nearest(Num x, double scale);
/// Returns both forms of a float that is an integer.
Whole wholeOf(Num n);
/// Returns 2^n p, rounded once, for 0.5 < p < 2 and -160 < n < 160. It is infinite if it overflows.
Num scaled(Num p, Whole n);
/// Returns true if 2^n p is one instruction, vscalefps: the lanes fill registers of a target that has it.
bool hasScalef(Num x);
/// Returns 2^n p for 0.5 < p < 2 and n < 128, rounded once. Without vscalefps, n is at least -127, and results below the
/// smallest normal number may be zero, which takes a third of the instructions of scaled().
Num scaledOrZero(Num p, Whole n);
/// Returns 2^(n + offset), which must be a normal number.
Num powerOfTwo(Whole n, int offset);

/// The exponent and fraction of a number x = 2^e (1 + f) with 1/sqrt 2 <= 1 + f < sqrt 2, for 0 < x < infinity.
struct Binary {
  Num e, f;
};
Binary splitBinary(Num x);

Num exp(Num x);
/// Returns exp x for x <= 88, or NaN. Results below the smallest normal number, from x = -87.3 on, may be zero.
Num expOfSmall(Num x);
Num expForBf16(Num x); ///< the same with an error of at most 2^-13, and exact at zero
Num exp2(Num x);
Num expm1(Num x);
Num sinh(Num x);
Num cosh(Num x);
Num tanh(Num x);
Num timesSigmoid(Num factor, Num negated);      ///< factor / (1 + exp(negated))
Num timesTwiceSigmoid(Num factor, Num negated); ///< 2 factor / (1 + exp(negated)), without overflow in 2 factor
Num erf(Num x);
Num log(Num x);
Num log2(Num x);
Num log10(Num x);
Num log1p(Num x);
Num rsqrt(Num x);
Num sin(Num x);
Num cos(Num x);
Num tan(Num x);
Num asin(Num x);
Num acos(Num x);
Num atan(Num x);
Num atan2(Num y, Num x);
Num asinh(Num x);
Num acosh(Num x);
Num atanh(Num x);
Num cbrt(Num x);
Num pow(Num x, Num y);

} // namespace tilewright::vecmath

#endif
