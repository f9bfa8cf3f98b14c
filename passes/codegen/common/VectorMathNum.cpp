// The arithmetic of `Num`, of which each function emits one op, and scaling by powers of two.
#include "passes/codegen/common/VectorMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tilewright::vecmath;

namespace {
/// 1.5 * 2^23. The unit in the last place of floats of this magnitude is one, so adding this number rounds to an
/// integer and leaves it in the low bits.
constexpr double kRounder = 12582912.0;

Type withElement(Type type, Type element) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.clone(element);
  return element;
}

unsigned width(Num x) { return getElementTypeOrSelf(x.get().getType()).getIntOrFloatBitWidth(); }
bool isFloat(Num x) { return isa<FloatType>(getElementTypeOrSelf(x.get().getType())); }

Num constant(Num like, TypedAttr element) {
  const Emitter &at = like.where();
  if (auto vector = dyn_cast<VectorType>(like.get().getType()))
    element = DenseElementsAttr::get(vector, Attribute(element));
  return {at, arith::ConstantOp::create(at.builder, at.loc, element)};
}

template <typename Op, typename... Operands> Num emit(Num first, Operands... rest) {
  const Emitter &at = first.where();
  return {at, Op::create(at.builder, at.loc, first.get(), rest...)};
}

template <typename Op> Num cast(Num x, Type element) {
  const Emitter &at = x.where();
  return {at, Op::create(at.builder, at.loc, withElement(x.get().getType(), element), x.get())};
}

Type integer(Num x, unsigned bits) { return IntegerType::get(x.get().getContext(), bits); }
Type real(Num x, unsigned bits) {
  MLIRContext *context = x.get().getContext();
  return bits == 64 ? Type(Float64Type::get(context)) : Type(Float32Type::get(context));
}
} // namespace

Num Num::like(double number) const {
  Type element = getElementTypeOrSelf(value.getType());
  Builder &builder = emitter->builder;
  if (isFloat(*this))
    return constant(*this, builder.getFloatAttr(element, number));
  return constant(*this, builder.getIntegerAttr(element, int64_t(number)));
}
Num Num::likeBits(uint64_t number) const {
  return constant(*this, IntegerAttr::get(integer(*this, width(*this)), APInt(width(*this), number)));
}
Num Num::bits() const { return cast<arith::BitcastOp>(*this, integer(*this, width(*this))); }
Num Num::real() const { return cast<arith::BitcastOp>(*this, ::real(*this, width(*this))); }
Num Num::toFloat() const { return cast<arith::SIToFPOp>(*this, ::real(*this, width(*this))); }
Num Num::toWide() const {
  return isFloat(*this) ? cast<arith::ExtFOp>(*this, ::real(*this, 64))
                        : cast<arith::ExtUIOp>(*this, integer(*this, 64));
}
Num Num::toNarrow() const {
  return isFloat(*this) ? cast<arith::TruncFOp>(*this, ::real(*this, 32))
                        : cast<arith::TruncIOp>(*this, integer(*this, 32));
}

namespace tilewright::vecmath {
Num operator+(Num a, Num b) { return isFloat(a) ? emit<arith::AddFOp>(a, b.get()) : emit<arith::AddIOp>(a, b.get()); }
Num operator-(Num a, Num b) { return isFloat(a) ? emit<arith::SubFOp>(a, b.get()) : emit<arith::SubIOp>(a, b.get()); }
Num operator*(Num a, Num b) { return isFloat(a) ? emit<arith::MulFOp>(a, b.get()) : emit<arith::MulIOp>(a, b.get()); }
Num operator/(Num a, Num b) { return emit<arith::DivFOp>(a, b.get()); }
Num operator-(Num a) { return emit<arith::NegFOp>(a); }
Num operator&(Num a, Num b) { return emit<arith::AndIOp>(a, b.get()); }
Num operator|(Num a, Num b) { return emit<arith::OrIOp>(a, b.get()); }
Num operator^(Num a, Num b) { return emit<arith::XOrIOp>(a, b.get()); }
Num shiftLeft(Num a, Num count) { return emit<arith::ShLIOp>(a, count.get()); }
Num shiftRight(Num a, Num count) { return emit<arith::ShRUIOp>(a, count.get()); }
Num shiftSigned(Num a, int count) { return emit<arith::ShRSIOp>(a, a.like(count).get()); }

Num less(Num a, Num b) {
  const Emitter &at = a.where();
  return {at, arith::CmpFOp::create(at.builder, at.loc, arith::CmpFPredicate::OLT, a.get(), b.get())};
}
Num equal(Num a, Num b) {
  const Emitter &at = a.where();
  if (isFloat(a))
    return {at, arith::CmpFOp::create(at.builder, at.loc, arith::CmpFPredicate::OEQ, a.get(), b.get())};
  return {at, arith::CmpIOp::create(at.builder, at.loc, arith::CmpIPredicate::eq, a.get(), b.get())};
}
Num select(Num condition, Num a, Num b) { return emit<arith::SelectOp>(condition, a.get(), b.get()); }

Value any(Num condition) {
  const Emitter &at = condition.where();
  auto vector = dyn_cast<VectorType>(condition.get().getType());
  if (!vector)
    return condition.get();
  auto flat = VectorType::get({vector.getNumElements()}, vector.getElementType());
  Value lanes = vector::ShapeCastOp::create(at.builder, at.loc, flat, condition.get());
  return vector::ReductionOp::create(at.builder, at.loc, vector::CombiningKind::OR, lanes);
}

Num fma(Num a, Num b, Num c) { return emit<math::FmaOp>(a, b.get(), c.get()); }
Num abs(Num x) { return emit<math::AbsFOp>(x); }
Num squareRoot(Num x) { return emit<math::SqrtOp>(x); }
Num truncate(Num x) { return emit<math::TruncOp>(x); }
Num copySign(Num magnitude, Num sign) { return emit<math::CopySignOp>(magnitude, sign.get()); }
// In this form, these are the max and min instructions of x86, which return their second operand if one is NaN.
Num atLeast(Num x, double low) { return select(less(x, low), x.like(low), x); }
Num atMost(Num x, double high) { return select(less(high, x), x.like(high), x); }

template <typename Element> static Num evaluate(Num x, ArrayRef<Element> coefficients) {
  Num sum = x.like(coefficients.back());
  for (Element coefficient : llvm::reverse(coefficients.drop_back()))
    sum = fma(sum, x, double(coefficient));
  return sum;
}
Num horner(Num x, ArrayRef<float> coefficients) { return evaluate(x, coefficients); }
Num horner(Num x, ArrayRef<double> coefficients) { return evaluate(x, coefficients); }

Whole nearest(Num x, double scale) {
  Num shifted = fma(x, scale, kRounder);
  return {shifted - kRounder, shifted.bits()};
}
Whole wholeOf(Num n) { return {n, (n + kRounder).bits()}; }
} // namespace tilewright::vecmath

namespace {
constexpr int64_t kScalefLanes = 16; ///< f32 lanes of the widest register

int64_t lanesOf(Num x) {
  auto type = dyn_cast<VectorType>(x.get().getType());
  return type && type.getRank() == 1 ? type.getNumElements() : 0;
}

/// Emits vscalefps on one register.
Value scalefRegister(const Emitter &at, Value p, Value n) {
  int64_t lanes = cast<VectorType>(p.getType()).getNumElements();
  bool isWidest = lanes == kScalefLanes;
  auto constant = [&](TypedAttr value) -> Value { return arith::ConstantOp::create(at.builder, at.loc, value); };
  SmallVector<Value> operands{p, n, constant(at.builder.getZeroAttr(p.getType()))};
  operands.push_back(
      constant(at.builder.getIntegerAttr(at.builder.getIntegerType(isWidest ? 16 : 8), -1))); // all lanes
  if (isWidest) // 4: use the thread's rounding mode
    operands.push_back(constant(at.builder.getI32IntegerAttr(4)));
  StringAttr name = at.builder.getStringAttr("llvm.x86.avx512.mask.scalef.ps." + Twine(lanes * 32));
  return LLVM::CallIntrinsicOp::create(at.builder, at.loc, p.getType(), name, operands).getResult(0);
}

/// Returns p 2^n with gradual underflow, for any p and n. Unlike a product, it is also fast if the result is subnormal.
Num scalef(Num p, Num n) {
  const Emitter &at = p.where();
  int64_t lanes = lanesOf(p);
  if (lanes <= kScalefLanes)
    return {at, scalefRegister(at, p.get(), n.get())};
  Value whole = p.get();
  for (int64_t lane = 0; lane < lanes; lane += kScalefLanes) {
    auto part = [&](Num x) {
      return vector::ExtractStridedSliceOp::create(at.builder, at.loc, x.get(), {lane}, {kScalefLanes}, {1});
    };
    whole = vector::InsertStridedSliceOp::create(at.builder, at.loc, scalefRegister(at, part(p), part(n)), whole,
                                                 ArrayRef<int64_t>{lane}, ArrayRef<int64_t>{1});
  }
  return {at, whole};
}

/// Returns 2^(n + offset), which must be a normal number. Only the low bits of `n` matter.
Num assemblePower(Num n, int offset) { return (shiftLeft(n, 23) + n.like((127 + offset) << 23)).real(); }
} // namespace

bool tilewright::vecmath::hasScalef(Num x) {
  int64_t lanes = lanesOf(x);
  return x.where().scalef && (lanes == 4 || lanes == 8 || (lanes > 0 && lanes % kScalefLanes == 0));
}

Num tilewright::vecmath::scaledOrZero(Num p, Whole n) {
  return hasScalef(p) ? scalef(p, n.value) : p * assemblePower(n.bits, 0);
}

Num tilewright::vecmath::scaled(Num p, Whole n) {
  if (hasScalef(p))
    return scalef(p, n.value);
  // Multiply by two factors near the square root of 2^n. Both are normal numbers, and only the second product rounds.
  Num whole = n.bits - n.value.like(kRounder).bits();
  Num half = shiftSigned(whole, 1);
  return p * assemblePower(half, 0) * assemblePower(whole - half, 0);
}

Num tilewright::vecmath::powerOfTwo(Whole n, int offset) { return assemblePower(n.bits, offset); }
