#include "passes/support/Divisions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tilewright;

bool tilewright::isIntegerDivision(Operation &op) {
  return isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::FloorDivSIOp, arith::CeilDivSIOp,
             arith::CeilDivUIOp>(op);
}

static bool isSigned(Operation &division) {
  return !isa<arith::DivUIOp, arith::RemUIOp, arith::CeilDivUIOp>(division);
}

static Value createNumber(OpBuilder &builder, Location loc, Type type, const APInt &number) {
  auto scalar = IntegerAttr::get(getElementTypeOrSelf(type), number);
  auto shaped = dyn_cast<ShapedType>(type);
  return arith::ConstantOp::create(builder, loc,
                                   shaped ? TypedAttr(DenseElementsAttr::get(shaped, Attribute(scalar))) : scalar);
}

Value tilewright::createSafeDivisor(OpBuilder &builder, Operation &division, Value dividend, Value divisor) {
  APInt known;
  if (matchPattern(divisor, m_ConstantInt(&known)) && !known.isZero() && !known.isAllOnes())
    return divisor;
  Location loc = division.getLoc();
  Type element = getElementTypeOrSelf(divisor.getType());
  unsigned width = element.isIndex() ? IndexType::kInternalStorageBitWidth : element.getIntOrFloatBitWidth();
  auto equals = [&](Value value, const APInt &number) -> Value {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, value,
                                 createNumber(builder, loc, value.getType(), number));
  };
  Value traps = equals(divisor, APInt::getZero(width));
  if (isSigned(division) && width > 1) {
    Value isMinusOne = equals(divisor, APInt::getAllOnes(width));
    Value isLeast = equals(dividend, APInt::getSignedMinValue(width));
    traps = arith::OrIOp::create(builder, loc, traps, arith::AndIOp::create(builder, loc, isMinusOne, isLeast));
  }
  Value one = createNumber(builder, loc, divisor.getType(), APInt(width, 1));
  return arith::SelectOp::create(builder, loc, traps, one, divisor);
}
