// Inserts and removes roundings in the bodies of expressions.
#include "passes/normalize/Roundings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "passes/graph/Rounding.h"

using namespace mlir;

namespace tilewright {
namespace {

/// Returns the narrow value in f32. A constant remains a constant.
Value extend(OpBuilder &builder, Value narrow) {
  Type wide = builder.getF32Type();
  FloatAttr constant;
  if (matchPattern(narrow, m_Constant(&constant)))
    return arith::ConstantOp::create(builder, narrow.getLoc(), builder.getFloatAttr(wide, constant.getValueAsDouble()));
  return arith::ExtFOp::create(builder, narrow.getLoc(), wide, narrow);
}

/// Returns a narrow value's f32 value before its rounding, or null if it was rounded elsewhere.
Value beforeRounding(OpBuilder &builder, Value narrow) {
  if (auto rounded = narrow.getDefiningOp<arith::TruncFOp>())
    return rounded.getIn().getType().isF32() ? rounded.getIn() : Value();
  auto choice = narrow.getDefiningOp<arith::SelectOp>();
  if (!choice)
    return {};
  Value whenTrue = beforeRounding(builder, choice.getTrueValue());
  Value whenFalse = beforeRounding(builder, choice.getFalseValue());
  if (!whenTrue && !whenFalse)
    return {};
  return arith::SelectOp::create(builder, choice.getLoc(), choice.getCondition(),
                                 whenTrue ? whenTrue : extend(builder, choice.getTrueValue()),
                                 whenFalse ? whenFalse : extend(builder, choice.getFalseValue()));
}
} // namespace

bool allowsFastMath(tile::SubprogramOp subprogram) {
  tile::NumericsAttr numerics = subprogram.getNumericsAttr();
  return !numerics || numerics.getMath() == tile::Math::fast;
}

void widenAccumulator(tile::ExprOp expr, unsigned result, Type type) {
  Block &body = expr.getBodyBlock();
  BlockArgument accumulator = body.getArgument(expr.getInputs().size() + result);
  Operation *combiner = body.getTerminator()->getOperand(result).getDefiningOp();
  OpBuilder builder(combiner);
  for (OpOperand &operand : combiner->getOpOperands())
    if (operand.get() != accumulator)
      operand.set(extend(builder, operand.get()));
  accumulator.setType(type);
  combiner->getResult(0).setType(type);
  SmallVector<Attribute> inits(expr.getInits().getValue());
  inits[result] = builder.getFloatAttr(type, cast<FloatAttr>(inits[result]).getValueAsDouble());
  expr.setInitsAttr(builder.getArrayAttr(inits));
}

void widenArithmetic(Block &body) {
  llvm::DenseMap<Value, Value> wide;
  for (Operation &op : llvm::make_early_inc_range(body)) {
    if (!computesNarrow(&op))
      continue;
    OpBuilder builder(&op);
    for (OpOperand &operand : op.getOpOperands()) {
      if (!isNarrowFloat(operand.get().getType()))
        continue;
      Value &extended = wide[operand.get()];
      if (!extended)
        extended = extend(builder, operand.get());
      operand.set(extended);
    }
    builder.setInsertionPointAfter(&op);
    for (OpResult result : op.getResults()) {
      Type narrow = result.getType();
      if (!isNarrowFloat(narrow))
        continue;
      result.setType(builder.getF32Type());
      auto rounded = arith::TruncFOp::create(builder, op.getLoc(), narrow, result);
      result.replaceAllUsesExcept(rounded, rounded);
    }
  }
}

bool leaveOutRounding(Operation *extended) {
  return toleratesUnrounded(extended->getResult(0)) && replaceByUnrounded(extended);
}

bool replaceByUnrounded(Operation *extended) {
  auto extend = cast<arith::ExtFOp>(extended);
  if (!extend.getType().isF32() || !isNarrowFloat(extend.getIn().getType()))
    return false;
  OpBuilder builder(extend);
  Value value = beforeRounding(builder, extend.getIn());
  if (!value)
    return false;
  extend.getResult().replaceAllUsesWith(value);
  extend.erase();
  return true;
}

} // namespace tilewright
