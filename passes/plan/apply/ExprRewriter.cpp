// Raising copies one body; inlining copies two and composes maps. Both keep the original op, because only the caller
// knows if it still has readers.
#include "passes/plan/apply/ExprRewriter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "passes/plan/apply/ExprBuilder.h"
#include "passes/normalize/Roundings.h"
#include "passes/support/AffineAlgebra.h"
#include "passes/support/EraseUnused.h"

using namespace mlir;

namespace tilewright {
namespace {

//===----------------------------------------------------------------------===//
// Raising
//===----------------------------------------------------------------------===//

/// Returns the element of an input: a constant if the tensor is a constant, else a body argument, or the table.
Value elementOf(OpBuilder &builder, ExprInputs &inputs, TensorAccess access, Value tensor, Location loc) {
  TypedAttr constant = constantElement(access.tensor);
  if (constant && matchPattern(access.tensor, m_Constant()) && !access.guard && !access.gathered)
    return arith::ConstantOp::create(builder, loc, constant);
  access.tensor = tensor;
  return inputs.add(access, loc);
}

/// Clones a linalg body, which captures only constants and tables (checked by describe()).
LogicalResult cloneBody(OpBuilder &builder, Block &source, IRMapping &mapping, ArrayRef<int64_t> domain) {
  for (Operation &op : source) {
    for (Value operand : op.getOperands())
      if (operand.getParentBlock() != &source && !mapping.contains(operand)) {
        TypedAttr constant = constantElement(operand);
        if (!constant)
          return failure();
        mapping.map(operand, arith::ConstantOp::create(builder, op.getLoc(), constant).getResult());
      }
    if (auto position = dyn_cast<linalg::IndexOp>(op)) {
      AffineExpr dim = builder.getAffineDimExpr(position.getDim());
      AffineMap map = simplifyInDomain(AffineMap::get(domain.size(), 0, dim), domain);
      mapping.map(position.getResult(), index(builder, op.getLoc(), map));
    } else if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
      SmallVector<Value> indices =
          llvm::map_to_vector(extract.getIndices(), [&](Value index) { return mapping.lookupOrDefault(index); });
      Value table = mapping.lookup(extract.getTensor());
      mapping.map(extract.getResult(),
                  tile::GatherOp::create(builder, op.getLoc(), extract.getType(), table, indices).getResult());
    } else if (op.hasTrait<OpTrait::IsTerminator>()) {
      SmallVector<Value> values =
          llvm::map_to_vector(op.getOperands(), [&](Value value) { return mapping.lookupOrDefault(value); });
      tile::YieldOp::create(builder, op.getLoc(), values);
    } else {
      builder.clone(op, mapping);
    }
  }
  return success();
}

LogicalResult raiseStructured(OpBuilder &builder, const TensorExpr &expr, ValueRange tensors, ExprInputs &inputs,
                              Block &body, SmallVector<Attribute> &inits) {
  auto op = cast<linalg::LinalgOp>(expr.op);
  Block &source = *op.getBlock();
  IRMapping mapping;
  SmallVector<tensor::ExtractOp> extracts(source.getOps<tensor::ExtractOp>()); // in the order of the gathered inputs
  for (auto [access, tensor] : llvm::zip(expr.inputs, tensors)) {
    Value element = elementOf(builder, inputs, access, tensor, op.getLoc());
    if (!access.gathered) {
      mapping.map(source.getArgument(access.operand), element);
      continue;
    }
    mapping.map(extracts.front().getTensor(), element);
    extracts.erase(extracts.begin());
  }
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    bool argument = number < source.getNumArguments();
    if (op.isDpsInit(&operand) && !expr.reductions.empty()) {
      TypedAttr init = constantElement(operand.get());
      if (!init)
        return failure();
      inits.push_back(init);
      Value accumulator = body.addArgument(init.getType(), op.getLoc());
      mapping.map(source.getArgument(number), accumulator);
    } else if (argument && !mapping.contains(source.getArgument(number)) && !source.getArgument(number).use_empty()) {
      TypedAttr scalar = constantElement(operand.get());
      if (!scalar)
        return failure();
      mapping.map(source.getArgument(number), arith::ConstantOp::create(builder, op.getLoc(), scalar).getResult());
    }
  }
  return cloneBody(builder, source, mapping, expr.domain);
}

/// Raises movement. Its value is that of the first input whose guard holds, else `otherwise`, or the last input if that
/// is null.
void raiseMovement(OpBuilder &builder, const TensorExpr &expr, ValueRange tensors, ExprInputs &inputs,
                   Value otherwise) {
  Location loc = expr.op->getLoc();
  Value value = otherwise;
  for (auto [access, tensor] : llvm::reverse(llvm::zip_equal(expr.inputs, tensors))) {
    IntegerSet guard = access.guard;
    if (guard && guard.isEmptyIntegerSet())
      continue;
    Value element = elementOf(builder, inputs, access, tensor, loc);
    if (!guard || !value)
      value = element;
    else
      value = arith::SelectOp::create(builder, loc, within(builder, loc, guard), element, value);
  }
  tile::YieldOp::create(builder, loc, value);
}

/// Returns the padding value if it is not zero, else null: a guarded input is zero where its guard does not hold.
Value paddingOf(OpBuilder &builder, Operation *op) {
  auto pad = dyn_cast<tensor::PadOp>(op);
  if (!pad)
    return {};
  TypedAttr padding = constantElement(pad.getConstantPaddingValue());
  return padding == builder.getZeroAttr(padding.getType())
             ? Value()
             : arith::ConstantOp::create(builder, op->getLoc(), padding).getResult();
}
} // namespace

FailureOr<tile::ExprOp> raise(OpBuilder &builder, const TensorExpr &expr, ValueRange tensors, std::string *reason) {
  Operation *op = expr.op;
  if (auto existing = dyn_cast<tile::ExprOp>(op)) {
    auto copy = cast<tile::ExprOp>(builder.clone(*existing));
    copy.getInputsMutable().assign(tensors);
    return copy;
  }
  auto body = std::make_unique<Block>();
  ExprInputs inputs(*body);
  SmallVector<Attribute> inits;
  OpBuilder inBody(op->getContext());
  inBody.setInsertionPointToStart(body.get());
  if (!isa<linalg::LinalgOp>(op)) {
    raiseMovement(inBody, expr, tensors, inputs, paddingOf(inBody, op));
  } else if (failed(raiseStructured(inBody, expr, tensors, inputs, *body, inits))) {
    if (reason)
      *reason = "the body or an accumulator starts from a computed value";
    return failure();
  }
  eraseUnused(*body);
  return buildExpr(builder, op->getLoc(), op->getResultTypes(), inputs, expr.domain, expr.reductions,
                   builder.getAffineMapArrayAttr(expr.results), builder.getArrayAttr(inits), std::move(body));
}

//===----------------------------------------------------------------------===//
// Inlining
//===----------------------------------------------------------------------===//

namespace {

/// Returns the point of the producer's domain as a function of the consumer's, through the consumer's access to the
/// producer's result.
AffineMap producerPoint(tile::ExprOp consumer, unsigned input, tile::ExprOp producer, unsigned result) {
  AffineMap access = consumer.getInputMap(input), written = producer.getResultMap(result);
  // Dims that the result does not use have extent 1.
  SmallVector<AffineExpr> indices(producer.getDomain().size(), getAffineConstantExpr(0, consumer.getContext()));
  for (auto [position, expr] : llvm::enumerate(written.getResults()))
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      indices[dim.getPosition()] = access.getResult(position);
  return AffineMap::get(consumer.getDomain().size(), 0, indices, consumer.getContext());
}

bool isZeroConstant(Value value) { return matchPattern(value, m_PosZeroFloat()) || matchPattern(value, m_Zero()); }

/// Returns true if `value` is zero wherever its inputs are not read. Inputs are zero there, and movement preserves it.
bool isZeroOutside(Value value) {
  if (isa<BlockArgument>(value) || isZeroConstant(value))
    return true;
  Operation *op = value.getDefiningOp();
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return isZeroOutside(select.getTrueValue()) && isZeroOutside(select.getFalseValue());
  return isa<arith::ExtFOp, arith::TruncFOp, arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp, arith::SIToFPOp,
             arith::UIToFPOp>(op) &&
         isZeroOutside(op->getOperand(0));
}

/// Returns true if a body uses an input's element only where its guard holds.
bool asksOnlyWithin(BlockArgument element, IntegerSet guard) {
  return llvm::all_of(element.getUses(), [&](OpOperand &use) {
    auto select = dyn_cast<arith::SelectOp>(use.getOwner());
    auto condition = select ? select.getCondition().getDefiningOp<tile::WithinOp>() : tile::WithinOp();
    return condition && use.getOperandNumber() == 1 && implies(condition.getSet(), guard);
  });
}

/// Clones the producer's body at points of the consumer's domain, and returns the values that it yields.
SmallVector<Value> cloneProducer(OpBuilder &builder, tile::ExprOp producer, AffineMap point, IRMapping &mapping,
                                 ArrayRef<int64_t> domain) {
  for (Operation &op : producer.getBodyBlock().without_terminator()) {
    if (auto inner = dyn_cast<tile::IndexOp>(op)) {
      AffineMap map = composeInDomain(inner.getMap(), point, domain);
      mapping.map(inner.getResult(), index(builder, op.getLoc(), map));
    } else if (auto inner = dyn_cast<tile::WithinOp>(op)) {
      IntegerSet set = composeInDomain(inner.getSet(), point, domain);
      Value holds;
      if (!set || set.isEmptyIntegerSet())
        holds = arith::ConstantOp::create(builder, op.getLoc(), builder.getBoolAttr(!set));
      else
        holds = within(builder, op.getLoc(), set);
      mapping.map(inner.getResult(), holds);
    } else if (auto select = dyn_cast<arith::SelectOp>(op)) {
      // A piece of a concat that this consumer never reads disappears with its select.
      Value condition = mapping.lookupOrDefault(select.getCondition());
      Attribute known;
      if (matchPattern(condition, m_Constant(&known)) && isa<IntegerAttr>(known)) {
        bool taken = !cast<IntegerAttr>(known).getValue().isZero();
        mapping.map(select.getResult(),
                    mapping.lookupOrDefault(taken ? select.getTrueValue() : select.getFalseValue()));
      } else {
        builder.clone(op, mapping);
      }
    } else {
      builder.clone(op, mapping);
    }
  }
  return llvm::map_to_vector(producer.getBodyBlock().getTerminator()->getOperands(),
                             [&](Value value) { return mapping.lookupOrDefault(value); });
}

/// Returns the producer's element at a point of the consumer's domain; it is zero where the consumer does not read it.
Value inlineElement(OpBuilder &builder, ExprInputs &inputs, tile::ExprOp consumer, unsigned input,
                    tile::ExprOp producer, unsigned result) {
  ArrayRef<int64_t> domain = consumer.getDomain();
  Location loc = consumer.getLoc();
  IntegerSet guard = consumer.getGuard(input);
  AffineMap point = producerPoint(consumer, input, producer, result);
  // Nothing is read outside the guard, so the maps must be right only inside it.
  SmallVector<Interval> read = guardedRanges(guard, domain);
  Block &body = producer.getBodyBlock();
  IRMapping mapping;
  for (auto [number, tensor] : llvm::enumerate(producer.getInputs())) {
    unsigned i = number;
    BlockArgument element = body.getArgument(i);
    IntegerSet both = conjoin(guard, composeInDomain(producer.getGuard(i), point, domain), domain);
    bool isTable = producer.isTable(i);
    if (!isTable && (element.use_empty() || (both && both.isEmptyIntegerSet())))
      mapping.map(element, zeroOf(builder, loc, element.getType()));
    else
      mapping.map(
          element,
          inputs.add({tensor, composeInDomain(producer.getInputMap(i), point, read), both, i, isTable}, loc));
  }
  Value value = cloneProducer(builder, producer, point, mapping, domain)[result];
  if (!guard || isZeroOutside(value) || asksOnlyWithin(consumer.getBodyBlock().getArgument(input), guard))
    return value;
  return arith::SelectOp::create(builder, loc, within(builder, loc, guard), value,
                                 zeroOf(builder, loc, value.getType()));
}
} // namespace

tile::ExprOp inlineProducer(OpBuilder &builder, tile::ExprOp consumer, unsigned input, tile::ExprOp producer,
                            unsigned producerResult, bool unrounded) {
  Location loc = consumer.getLoc();
  auto body = std::make_unique<Block>();
  ExprInputs inputs(*body);
  OpBuilder inBody(consumer.getContext());
  inBody.setInsertionPointToStart(body.get());

  Block &source = consumer.getBodyBlock();
  unsigned numInputs = consumer.getInputs().size();
  IRMapping mapping;
  for (BlockArgument accumulator : source.getArguments().drop_front(numInputs))
    mapping.map(accumulator, body->addArgument(accumulator.getType(), accumulator.getLoc()));
  for (unsigned i = 0; i < numInputs; ++i)
    mapping.map(source.getArgument(i),
                i == input ? inlineElement(inBody, inputs, consumer, i, producer, producerResult)
                           : inputs.add({consumer.getInputs()[i], consumer.getInputMap(i), consumer.getGuard(i), i,
                                         consumer.isTable(i)},
                                        loc));
  SmallVector<Operation *> extensions;
  for (Operation &op : source) {
    Operation *copy = inBody.clone(op, mapping);
    if (unrounded && isa<arith::ExtFOp>(op) && op.getOperand(0) == source.getArgument(input))
      extensions.push_back(copy);
  }
  eraseUnused(*body);
  inputs.eraseUnused();
  llvm::erase_if(extensions, [&](Operation *extension) {
    return llvm::none_of(*body, [&](Operation &live) { return &live == extension; });
  });

  tile::ExprOp fused =
      buildExpr(builder, loc, consumer.getResultTypes(), inputs, consumer.getDomain(), consumer.getReductions(),
                consumer.getResultMaps(), consumer.getInits(), std::move(body));
  llvm::for_each(extensions, replaceByUnrounded);
  eraseUnused(fused.getBodyBlock());
  fused.setInOrder(consumer.getInOrder());
  fused.setDimsAttr(consumer.getDimsAttr());
  fused.setTilingsAttr(consumer.getTilingsAttr());
  fused.setMicroKernelAttr(consumer.getMicroKernelAttr());
  fused.setGemmAttr(consumer.getGemmAttr());
  fused->setDiscardableAttrs(consumer->getDiscardableAttrDictionary());
  return fused;
}

} // namespace tilewright
