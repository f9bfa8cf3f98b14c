// A kernel reads tensors only, so a body that uses a scalar from outside is not a tensor expression. If the scalar is a
// tensor's element at a fixed index, the tensor becomes an operand, and arithmetic on the scalar moves into the body. A
// pad has no such operand for its value v. Integers x are padded with v by padding x - v with zeros and adding v, which
// is exact even if it wraps around.
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
/// Returns the op that extracts an element at a constant index, or null.
tensor::ExtractOp elementAtFixedIndex(Value value) {
  auto extract = value.getDefiningOp<tensor::ExtractOp>();
  bool isFixed = extract && llvm::all_of(extract.getIndices(), [](Value index) { return getConstantIntValue(index); });
  return isFixed ? extract : tensor::ExtractOp();
}

/// Returns true if the value is arithmetic on constants and on one or more elements at fixed indices.
bool isTaken(Value value) {
  if (constantElement(value))
    return false;
  if (elementAtFixedIndex(value))
    return true;
  Operation *op = value.getDefiningOp();
  bool isArithmetic = op && isa_and_nonnull<arith::ArithDialect>(op->getDialect()) && op->getNumRegions() == 0 &&
                      op->getNumResults() == 1;
  return isArithmetic &&
         llvm::all_of(op->getOperands(), [](Value operand) { return constantElement(operand) || isTaken(operand); });
}

/// Gives a generic further inputs: the tensors whose elements at fixed indices its body uses.
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
    if (tensor::ExtractOp extract = elementAtFixedIndex(value)) {
      SmallVector<AffineExpr> indices;
      for (Value index : extract.getIndices())
        indices.push_back(getAffineConstantExpr(*getConstantIntValue(index), op.getContext()));
      unsigned number = inputs.size();
      inputs.push_back(extract.getTensor());
      maps.insert(maps.begin() + number, AffineMap::get(op.getNumLoops(), 0, indices, op.getContext()));
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

  /// Returns the body's original first op, in front of which ops are cloned one after another.
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
  IRMapping own; ///< from values outside to those that replace them in the body
};

/// Combines each element of `value` with a number, by an addition or a subtraction.
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
  // An unused extract would still count as a reader of its tensor.
  root->walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
    if (op->getNumResults() == 1 && isOpTriviallyDead(op) && isTaken(op->getResult(0)))
      op->erase();
  });
}
