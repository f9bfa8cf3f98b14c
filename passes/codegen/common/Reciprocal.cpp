#include "passes/codegen/common/Reciprocal.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace tilewright;

bool tilewright::allowsReciprocal(arith::DivFOp division) {
  Type type = division.getType();
  return bitEnumContainsAll(division.getFastmath(), arith::FastMathFlags::arcp) && (type.isF32() || type.isF64());
}

ScaledReciprocal tilewright::reciprocalOf(OpBuilder &builder, Location loc, Value divisor) {
  Type type = divisor.getType();
  int exponent = type.isF64() ? 900 : 100;
  auto power = [&](int e) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getFloatAttr(type, std::ldexp(1.0, e)));
  };
  Value size = math::AbsFOp::create(builder, loc, divisor);
  Value isSmall = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, size, power(-exponent));
  Value isLarge = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGT, size, power(exponent));
  Value scale = arith::SelectOp::create(builder, loc, isLarge, power(-exponent), power(0));
  scale = arith::SelectOp::create(builder, loc, isSmall, power(exponent), scale);
  Value scaled = arith::MulFOp::create(builder, loc, divisor, scale);
  return {scale, arith::DivFOp::create(builder, loc, power(0), scaled)};
}
