// Emits the ops of a nest's body. A division of all lanes by one number becomes a multiplication by its reciprocal, and
// a maximum or minimum becomes a comparison and a select, since NestFlags.cpp handles NaN.
#include "passes/codegen/common/NestOps.h"

#include "passes/codegen/common/Reciprocal.h"
#include "passes/support/Divisions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

bool NestOps::isNumberOfLanes(arith::IndexCastOp op) {
  return op.getIn().getDefiningOp<IndexOp>() && nest.vectorised.lookup(op);
}

bool NestOps::dividesByUniform(Operation &op) {
  auto division = dyn_cast<arith::DivFOp>(op);
  if (!division || !allowsReciprocal(division) || !nest.vectorised.lookup(&op))
    return false;
  auto known = nest.varies.find(op.getOperand(1));
  return known == nest.varies.end() || !known->second.test(vectorDim);
}

void NestOps::emitOp(Operation &op, IRMapping &values, Value mask) {
  if (auto load = dyn_cast<LoadOp>(op)) {
    values.map(load.getValue(), emitLoad(load, mask));
  } else if (auto storeOp = dyn_cast<StoreOp>(op)) {
    Value value = values.lookupOrDefault(storeOp.getValue());
    emitIf(builder, loc, stores, [&] {
      store(value, storeOp.getSlice(), storeOp.getSlice().getType(), storeOp.getMap(), mask, storeOp.getStreamed());
    });
  } else if (auto gather = dyn_cast<GatherOp>(op)) {
    values.map(gather.getValue(), emitGather(gather, values, mask));
  } else if (auto index = dyn_cast<IndexOp>(op)) {
    AffineExpr expr = index.getMap().getResult(0);
    values.map(index.getResult(),
               nest.vectorised.lookup(&op) ? vectorIndex(expr, builder.getIndexType()) : scalarIndex(expr));
  } else if (auto within = dyn_cast<WithinOp>(op)) {
    values.map(within.getResult(), emitWithin(within.getSet(), nest.vectorised.lookup(&op)));
  } else if (auto extremum = llvm::find_if(nest.extrema, [&](const Extremum &e) { return e.op == &op; });
             extremum != nest.extrema.end()) {
    values.map(op.getResult(0), emitOrdered(*extremum, values));
  } else if (auto cast = dyn_cast<arith::IndexCastOp>(op); cast && isNumberOfLanes(cast)) {
    AffineExpr expr = cast.getIn().getDefiningOp<IndexOp>().getMap().getResult(0);
    values.map(cast.getResult(), toVector(vectorIndex(expr, cast.getType())));
  } else if (dividesByUniform(op)) {
    values.map(op.getResult(0), multiplyByReciprocal(values.lookupOrDefault(op.getOperand(0)),
                                                     values.lookupOrDefault(op.getOperand(1))));
  } else if (Value sum = emitFusedSum(op, values)) {
    values.map(op.getResult(0), sum);
  } else {
    IRMapping operands = values;
    bool isVector = nest.vectorised.lookup(&op);
    if (isIntegerDivision(op)) { // lanes past the end and elements that were not loaded are zero
      Value dividend = values.lookupOrDefault(op.getOperand(0)), divisor = values.lookupOrDefault(op.getOperand(1));
      if (isVector)
        std::tie(dividend, divisor) = std::pair(toVector(dividend), toVector(divisor));
      operands.map(op.getOperand(1), createSafeDivisor(builder, op, dividend, divisor));
    }
    if (isVector)
      emitElementwise(op, operands);
    else
      builder.clone(op, operands);
    for (Value result : op.getResults())
      values.map(result, operands.lookup(result));
    // With fast-math flags, LLVM would use reciprocal estimates, whose error is more than one unit in the last place.
    if (isa<arith::DivFOp>(op))
      operands.lookup(op.getResult(0)).getDefiningOp<arith::DivFOp>().setFastmath(arith::FastMathFlags::none);
  }
}

/// Splits a product with a factor that is the same in all lanes into its vector and that factor, if the product may be
/// reassociated. Returns null values otherwise.
static std::pair<Value, Value> splitUniformFactor(Value value) {
  auto product = value.getDefiningOp<arith::MulFOp>();
  if (!product || !bitEnumContainsAll(product.getFastmath(), arith::FastMathFlags::reassoc))
    return {};
  auto broadcast = product.getRhs().getDefiningOp<vector::BroadcastOp>();
  bool uniform = broadcast && !isa<VectorType>(broadcast.getSource().getType());
  return uniform ? std::pair(product.getLhs(), broadcast.getSource()) : std::pair<Value, Value>();
}

Value NestOps::multiplyByReciprocal(Value dividend, Value divisor) {
  auto [scale, reciprocal] = reciprocalOf(builder, loc, divisor);
  if (auto [lanes, factor] = splitUniformFactor(dividend); factor) {
    Value both = arith::MulFOp::create(builder, loc, arith::MulFOp::create(builder, loc, factor, scale), reciprocal);
    return arith::MulFOp::create(builder, loc, lanes, toVector(both));
  }
  Value product = arith::MulFOp::create(builder, loc, toVector(dividend), toVector(scale));
  return arith::MulFOp::create(builder, loc, product, toVector(reciprocal));
}

Value NestOps::emitOrdered(const Extremum &extremum, IRMapping &values) {
  Value before = toVector(values.lookupOrDefault(extremum.accumulator));
  Value value = toVector(values.lookupOrDefault(extremum.value));
  auto predicate =
      isa<arith::MaximumFOp, arith::MaxNumFOp>(extremum.op) ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT;
  Value wins = arith::CmpFOp::create(builder, loc, predicate, value, before);
  return arith::SelectOp::create(builder, loc, wins, value, before);
}

Value NestOps::emitFusedSum(Operation &op, const IRMapping &values) {
  auto sum = dyn_cast<arith::AddFOp>(op);
  if (!shape.fusesProducts || !sum || !bitEnumContainsAll(sum.getFastmath(), arith::FastMathFlags::contract))
    return {};
  for (auto [accumulator, value] : {std::pair(sum.getLhs(), sum.getRhs()), std::pair(sum.getRhs(), sum.getLhs())}) {
    auto argument = dyn_cast<BlockArgument>(accumulator);
    auto product = value.getDefiningOp<arith::MulFOp>();
    if (!argument || argument.getOwner() != &compute.getBodyBlock() || !product || !product->hasOneUse())
      continue;
    SmallVector<Value> operands;
    for (Value operand : {product.getLhs(), product.getRhs(), accumulator}) {
      Value emitted = values.lookupOrDefault(operand);
      operands.push_back(nest.vectorised.lookup(&op) ? toVector(emitted) : emitted);
    }
    return math::FmaOp::create(builder, loc, operands[0], operands[1], operands[2]);
  }
  return {};
}

void NestOps::emitElementwise(Operation &op, IRMapping &values) {
  OperationState state(loc, op.getName());
  for (Value operand : op.getOperands())
    state.addOperands(toVector(values.lookupOrDefault(operand)));
  for (Type type : op.getResultTypes())
    state.addTypes(VectorType::get({lanes}, type));
  state.attributes = op.getDiscardableAttrDictionary();
  state.propertiesAttr = op.getPropertiesAsAttribute();
  Operation *copy = builder.create(state);
  values.map(op.getResults(), copy->getResults());
}
