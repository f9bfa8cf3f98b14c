// A body that reads a number from outside cannot be described: all that a kernel reads are tensors. An element at a
// fixed place of one is such a number as an operand, and arithmetic on it moves into the body. A pad has no operand for
// its number v; integers x are padded with it as (x - v), padded with zeros, plus v, which is exact however it wraps.
#include "passes/normalize/ExtractedScalars.h"
#include "passes/graph/TensorExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// The element at a place that is known of a tensor, or null.
tensor::ExtractOp elementAtFixedPlace(Value value) {
  auto extract = value.getDefiningOp<tensor::ExtractOp>();
  bool isFixed = extract && llvm::all_of(extract.getIndices(), [](Value index) { return getConstantIntValue(index); });
  return isFixed ? extract : tensor::ExtractOp();
}

/// Whether the value is arithmetic on constants and elements at fixed places, of which there is one at least.
bool isTaken(Value value) {
  if (constantElement(value))
    return false;
  if (elementAtFixedPlace(value))
    return true;
  Operation *op = value.getDefiningOp();
  bool isArithmetic = op && isa_and_nonnull<arith::ArithDialect>(op->getDialect()) && op->getNumRegions() == 0 &&
                      op->getNumResults() == 1;
  return isArithmetic &&
         llvm::all_of(op->getOperands(), [](Value operand) { return constantElement(operand) || isTaken(operand); });
}

/// A generic with further inputs, which are elements at fixed places.
class Taker {
public:
  explicit Taker(linalg::GenericOp op) : op(op), body(op.getBody()) {}

  void run() {
    SetVector<Value> values;
    for (OpOperand *input : op.getDpsInputOperands())
      if (!isa<ShapedType>(input->get().getType()) && isTaken(input->get()))
        values.insert(input->get());
    for (Operation &inside : *body)
      for (Value operand : inside.getOperands())
        if (operand.getParentBlock() != body && isTaken(operand))
          values.insert(operand);
    if (values.empty())
      return;
    inputs = op.getDpsInputs();
    maps = op.getIndexingMapsArray();
    for (Value value : values) {
      Value own = inBody(value);
      value.replaceUsesWithIf(own, [&](OpOperand &use) { return use.getOwner()->getBlock() == body; });
      for (OpOperand *input : op.getDpsInputOperands())
        if (input->get() == value)
          body->getArgument(input->getOperandNumber()).replaceAllUsesWith(own);
    }
    replace();
  }

private:
  Value inBody(Value value) {
    if (constantElement(value))
      return value;
    if (Value known = own.lookupOrNull(value))
      return known;
    if (tensor::ExtractOp extract = elementAtFixedPlace(value)) {
      SmallVector<AffineExpr> place;
      for (Value index : extract.getIndices())
        place.push_back(getAffineConstantExpr(*getConstantIntValue(index), op.getContext()));
      unsigned number = inputs.size();
      inputs.push_back(extract.getTensor());
      maps.insert(maps.begin() + number, AffineMap::get(op.getNumLoops(), 0, place, op.getContext()));
      own.map(value, body->insertArgument(number, value.getType(), extract.getLoc()));
      return own.lookup(value);
    }
    Operation *arithmetic = value.getDefiningOp();
    for (Value operand : arithmetic->getOperands())
      own.map(operand, inBody(operand));
    OpBuilder builder = OpBuilder::atBlockBegin(body);
    builder.setInsertionPoint(body, firstOwn());
    builder.clone(*arithmetic, own);
    return own.lookup(value);
  }

  /// The first op that was there before: what is cloned stands in front of it, one after another.
  Block::iterator firstOwn() {
    if (!before)
      before = &body->front();
    return before->getIterator();
  }

  void replace() {
    OpBuilder builder(op);
    auto generic = linalg::GenericOp::create(builder, op.getLoc(), op->getResultTypes(), inputs, op.getDpsInits(), maps,
                                             op.getIteratorTypesArray());
    generic.getRegion().takeBody(op.getRegion());
    op->replaceAllUsesWith(generic.getResults());
    op->erase();
  }

  linalg::GenericOp op;
  Block *body;
  Operation *before = nullptr;
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  IRMapping own; ///< what stands for values from outside in the body
};

/// `value` plus or minus a number, element by element.
template <typename Op> Value combine(OpBuilder &builder, Location loc, Value value, Value number) {
  auto type = cast<RankedTensorType>(value.getType());
  AffineMap all = builder.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  Value into = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  auto generic = linalg::GenericOp::create(builder, loc, TypeRange(type), value, into, ArrayRef{all, all}, loops,
                                           [&](OpBuilder &body, Location at, ValueRange elements) {
                                             Value sum = Op::create(body, at, elements[0], number);
                                             linalg::YieldOp::create(body, at, sum);
                                           });
  return generic.getResult(0);
}

void padWithConstant(tensor::PadOp pad) {
  Value number = pad.getConstantPaddingValue();
  bool isKnown = pad.getSourceType().hasStaticShape() && pad.getResultType().hasStaticShape();
  if (!isKnown || !number || !number.getType().isInteger() || !isTaken(number))
    return;
  OpBuilder builder(pad);
  Location loc = pad.getLoc();
  Value difference = combine<arith::SubIOp>(builder, loc, pad.getSource(), number);
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(number.getType()));
  Value padded = tensor::PadOp::create(builder, loc, pad.getResultType(), difference, pad.getMixedLowPad(),
                                       pad.getMixedHighPad(), zero);
  pad.replaceAllUsesWith(combine<arith::AddIOp>(builder, loc, padded, number));
  pad.erase();
}
} // namespace

void tilewright::takeScalarsInside(Operation *root) {
  SmallVector<tensor::PadOp> pads;
  root->walk([&](tensor::PadOp op) { pads.push_back(op); });
  for (tensor::PadOp op : pads)
    padWithConstant(op);
  SmallVector<linalg::GenericOp> generics;
  root->walk([&](linalg::GenericOp op) {
    if (op.hasPureTensorSemantics())
      generics.push_back(op);
  });
  for (linalg::GenericOp op : generics)
    Taker(op).run();
  // Who is left unread would still count as a reader of the tensor.
  root->walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
    if (op->getNumResults() == 1 && isOpTriviallyDead(op) && isTaken(op->getResult(0)))
      op->erase();
  });
}
