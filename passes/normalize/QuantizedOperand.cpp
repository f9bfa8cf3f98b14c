#include "passes/normalize/QuantizedOperand.h"

#include "passes/graph/TensorExpr.h"
#include "passes/support/AffineAlgebra.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tilewright;

bool QuantizationNumber::isTensor() const { return isa<ShapedType>(value.getType()); }

std::optional<int64_t> QuantizationNumber::integer() const {
  auto number = dyn_cast_or_null<IntegerAttr>(known);
  if (!number)
    return std::nullopt;
  return isSigned ? number.getValue().getSExtValue() : static_cast<int64_t>(number.getValue().getZExtValue());
}

Value QuantizationNumber::inBody(OpBuilder &body, Location at, Value element) const {
  if (std::optional<int64_t> number = integer())
    return arith::ConstantOp::create(body, at, body.getI32IntegerAttr(static_cast<int32_t>(*number)));
  if (known)
    return arith::ConstantOp::create(body, at, known);
  Value number = isTensor() ? element : value;
  if (!number.getType().isInteger(8))
    return number;
  Type wide = body.getI32Type();
  return isSigned ? arith::ExtSIOp::create(body, at, wide, number).getResult()
                  : arith::ExtUIOp::create(body, at, wide, number).getResult();
}

namespace {
/// Returns the generic that computes each element of a tensor independently, or null.
linalg::GenericOp elementwise(Value tensor) {
  auto op = tensor.getDefiningOp<linalg::GenericOp>();
  bool isPlain = op && op->getNumResults() == 1 && op.getNumReductionLoops() == 0 && op.hasPureTensorSemantics() &&
                 op.getIndexingMapsArray().back().isIdentity();
  return isPlain ? op : linalg::GenericOp();
}

Value yieldedBy(linalg::GenericOp op) { return op.getBody()->getTerminator()->getOperand(0); }

/// A value in the body of a generic.
struct Element {
  mutable linalg::GenericOp op; ///< mutable because the accessors of this handle are not const
  Value value;
  AffineMap index; ///< map from an index of the operand to the op's loops

  Element with(Value other) const { return {op, other, index}; }

  /// Returns the input that the value is an element of, or null.
  OpOperand *input() const {
    auto argument = dyn_cast<BlockArgument>(value);
    bool isInput = argument && argument.getOwner() == op.getBody() && argument.getArgNumber() < op.getNumDpsInputs();
    return isInput ? op.getDpsInputOperand(argument.getArgNumber()) : nullptr;
  }
  AffineMap indexIn(OpOperand *input) const { return op.getMatchingIndexingMap(input).compose(index); }

  /// Follows inputs back to the body that computes the value.
  Element origin() const {
    OpOperand *from = input();
    linalg::GenericOp maker = from ? elementwise(from->get()) : linalg::GenericOp();
    return maker ? Element{maker, yieldedBy(maker), indexIn(from)}.origin() : *this;
  }

  template <typename Op> Op definedBy() const { return value.getDefiningOp<Op>(); }
};

/// Returns a value that the body itself does not compute: an element of a tensor, a scalar from outside or a constant.
std::optional<QuantizationNumber> numberAt(const Element &from) {
  QuantizationNumber number{from.value, true, {}, constantElement(from.value)};
  if (OpOperand *input = from.input()) {
    number.value = input->get();
    number.map = from.indexIn(input);
    number.known = constantElement(input->get());
  } else if (!number.known && number.value.getParentBlock() == from.op.getBody()) {
    return std::nullopt;
  }
  return number;
}

/// Returns the byte that a value is widened from, or null, and sets `isSigned` accordingly.
Value narrowOf(Value wide, bool &isSigned) {
  Operation *op = wide.getDefiningOp();
  if (!isa_and_nonnull<arith::ExtSIOp, arith::ExtUIOp>(op) || !op->getOperand(0).getType().isInteger(8))
    return {};
  isSigned = isa<arith::ExtSIOp>(op);
  return op->getOperand(0);
}

/// Returns a zero point in i32, possibly widened from a byte.
std::optional<QuantizationNumber> zeroPointAt(const Element &element) {
  Element from = element.origin();
  bool isSigned = true;
  Value narrow = narrowOf(from.value, isSigned);
  std::optional<QuantizationNumber> number = narrow ? numberAt(from.with(narrow)) : std::nullopt;
  if (!number)
    return numberAt(element);
  number->isSigned = isSigned;
  return number;
}

/// Reads the bytes of an operand from the value that widens them. Returns false if there are none.
bool readBytes(const Element &wide, QuantizedOperand &operand) {
  Element from = wide.origin();
  Value narrow = narrowOf(from.value, operand.isSigned);
  OpOperand *input = narrow ? from.with(narrow).input() : nullptr;
  if (!input || !isa<RankedTensorType>(input->get().getType()))
    return false;
  operand.bytes = input->get();
  operand.map = from.with(narrow).indexIn(input);
  return true;
}

/// Reads byte - zero point, in i32.
bool readDifference(const Element &element, QuantizedOperand &operand) {
  Element from = element.origin();
  auto difference = from.definedBy<arith::SubIOp>();
  if (!difference)
    return readBytes(from, operand);
  operand.zeroPoint = zeroPointAt(from.with(difference.getRhs()));
  return operand.zeroPoint && readBytes(from.with(difference.getLhs()), operand);
}

/// Reads (byte - zero point) * scale, in f32.
bool readScaled(const Element &element, QuantizedOperand &operand) {
  Element from = element.origin();
  auto product = from.definedBy<arith::MulFOp>();
  if (!product)
    return false;
  for (bool swapped : {false, true}) {
    Element difference = from.with(swapped ? product.getRhs() : product.getLhs()).origin();
    auto number = difference.definedBy<arith::SIToFPOp>();
    if (!number || !number.getIn().getType().isInteger(32))
      continue;
    operand.scale = numberAt(from.with(swapped ? product.getLhs() : product.getRhs()));
    return operand.scale && readDifference(difference.with(number.getIn()), operand);
  }
  return false;
}

/// Reads an operand from the body that computes its elements from bytes. The maps are over the tensor's index.
std::optional<QuantizedOperand> readOperand(Value tensor) {
  linalg::GenericOp op = elementwise(tensor);
  if (!op)
    return std::nullopt;
  unsigned rank = cast<RankedTensorType>(tensor.getType()).getRank();
  Element element{op, yieldedBy(op), AffineMap::getMultiDimIdentityMap(rank, op.getContext())};
  QuantizedOperand operand;
  bool isInteger = getElementTypeOrSelf(tensor).isInteger(32);
  bool isOne = isInteger ? readDifference(element, operand) : readScaled(element, operand);
  return isOne ? std::optional(operand) : std::nullopt;
}

/// Returns the map from an element of a copy to its source, or null if the op is not a copy.
AffineMap copiedFrom(Operation *producer) {
  auto op = dyn_cast_or_null<linalg::LinalgOp>(producer);
  if (!op || op.getNumDpsInputs() != 1 || op.getNumDpsInits() != 1 || op.getNumReductionLoops() > 0 ||
      !op.hasPureTensorSemantics())
    return {};
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  Block &body = *op.getBlock();
  bool copies = body.getTerminator()->getOperand(0) == body.getArgument(0);
  return copies && maps[1].isIdentity() ? maps[0] : AffineMap();
}

/// Returns true for movement that can be repeated on bytes. A pad must pad with zeros, which become zero points.
bool canRepeat(Operation *op) {
  if (auto pad = dyn_cast<tensor::PadOp>(op)) {
    Value value = pad.getConstantPaddingValue();
    bool isZero = value && (matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero()));
    return isZero && pad.getResultType().hasStaticShape();
  }
  return isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ExtractSliceOp>(op) || copiedFrom(op);
}

/// Returns the byte for the elements that a pad adds.
Value padOf(OpBuilder &builder, Location at, const std::optional<QuantizationNumber> &zeroPoint) {
  if (!zeroPoint)
    return arith::ConstantOp::create(builder, at, builder.getI8IntegerAttr(0));
  if (std::optional<int64_t> number = zeroPoint->integer())
    return arith::ConstantOp::create(builder, at, builder.getI8IntegerAttr(static_cast<int8_t>(*number)));
  Value value = zeroPoint->value;
  if (zeroPoint->isTensor()) {
    Value zero = arith::ConstantOp::create(builder, at, builder.getIndexAttr(0));
    SmallVector<Value> index(cast<RankedTensorType>(value.getType()).getRank(), zero);
    value = tensor::ExtractOp::create(builder, at, value, index);
  }
  return value.getType().isInteger(8) ? value
                                      : arith::TruncIOp::create(builder, at, builder.getI8Type(), value).getResult();
}

/// Repeats the movement of `op` on bytes.
Value repeat(OpBuilder &builder, Operation *op, Value bytes, const std::optional<QuantizationNumber> &zeroPoint) {
  Location at = op->getLoc();
  auto type = cast<RankedTensorType>(op->getResult(0).getType()).clone(builder.getI8Type());
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return tensor::PadOp::create(builder, at, type, bytes, pad.getMixedLowPad(), pad.getMixedHighPad(),
                                 padOf(builder, at, zeroPoint));
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return tensor::ExpandShapeOp::create(builder, at, type, bytes, expand.getReassociationIndices());
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return tensor::CollapseShapeOp::create(builder, at, type, bytes, collapse.getReassociationIndices());
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return tensor::ExtractSliceOp::create(builder, at, type, bytes, slice.getMixedOffsets(), slice.getMixedSizes(),
                                          slice.getMixedStrides());
  Value init = tensor::EmptyOp::create(builder, at, type.getShape(), type.getElementType());
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  SmallVector<AffineMap> maps = cast<linalg::LinalgOp>(op).getIndexingMapsArray();
  return linalg::GenericOp::create(
             builder, at, TypeRange(type), bytes, init, maps, loops,
             [](OpBuilder &body, Location in, ValueRange elements) { linalg::YieldOp::create(body, in, elements[0]); })
      .getResult(0);
}

bool pads(ArrayRef<Operation *> moved) {
  return llvm::any_of(moved, [](Operation *op) { return isa<tensor::PadOp>(op); });
}

/// Returns true if there is one number for all elements, or none.
bool isSame(const std::optional<QuantizationNumber> &number) {
  return !number || number->known || !number->isTensor() ||
         cast<ShapedType>(number->value.getType()).getNumElements() == 1;
}

/// Composes `map` after `index`. If the result only names dims it stays so, including dims of extent one, for which
/// composeInDomain would use zeros.
AffineMap composeNames(AffineMap map, AffineMap index, ArrayRef<int64_t> domain) {
  AffineMap plain = map.compose(index);
  return plain.isProjectedPermutation() ? plain : composeInDomain(map, index, domain);
}

/// Returns true if each loop that alone is an index goes over the whole dim of the tensor. A window of a single position
/// may be shorter, which the map of an op cannot say.
bool areWhole(AffineMap map, Value tensor, ArrayRef<int64_t> domain) {
  auto type = cast<RankedTensorType>(tensor.getType());
  return llvm::all_of(llvm::enumerate(map.getResults()), [&](auto indexed) {
    auto loop = dyn_cast<AffineDimExpr>(indexed.value());
    return !loop || domain[loop.getPosition()] == type.getDimSize(indexed.index());
  });
}
} // namespace

std::optional<QuantizedOperand> tilewright::quantizedOperand(Value tensor, AffineMap read, ArrayRef<int64_t> domain) {
  SmallVector<Operation *> moved;
  AffineMap index = read; // index in `tensor`, over the loops
  while (true) {
    Operation *op = tensor.getDefiningOp();
    AffineMap copied = copiedFrom(op);
    std::optional<QuantizedOperand> operand = copied ? std::nullopt : readOperand(tensor);
    if (operand) {
      for (std::optional<QuantizationNumber> *number : {&operand->zeroPoint, &operand->scale})
        if (*number && (*number)->map)
          (*number)->map = composeNames((*number)->map, index, domain);
      if (!moved.empty() && !operand->map.isIdentity())
        return std::nullopt;
      if (pads(moved) && !(isSame(operand->zeroPoint) && isSame(operand->scale) && operand->hasByteZeroPoint()))
        return std::nullopt; // padding needs one number for all elements, and a zero point that is a byte
      operand->map = moved.empty() ? composeNames(operand->map, index, domain) : read;
      if (moved.empty() && !areWhole(operand->map, operand->bytes, domain))
        return std::nullopt;
      operand->moved = std::move(moved);
      return operand;
    }
    FailureOr<TensorExpr> expr = op ? describe(op) : FailureOr<TensorExpr>(failure());
    if (failed(expr) || expr->kind != ExprKind::movement || expr->inputs.size() != 1 || !canRepeat(op))
      return std::nullopt;
    index = composeNames(expr->inputs[0].map.compose(expr->pointOf(0)), index, domain);
    tensor = expr->inputs[0].tensor;
    // A transpose or a broadcast only changes the map with which the bytes are read.
    if (moved.empty() && copied && copied.isProjectedPermutation())
      read = copied.compose(read);
    else
      moved.push_back(op);
  }
}

bool QuantizedOperand::hasByteZeroPoint() const {
  if (!zeroPoint)
    return true;
  auto isByte = [&](int64_t number) { return isSigned ? llvm::isInt<8>(number) : llvm::isUInt<8>(number); };
  if (std::optional<int64_t> number = zeroPoint->integer())
    return isByte(*number);
  if (DenseIntElementsAttr numbers; matchPattern(zeroPoint->value, m_Constant(&numbers))) // one per row or column
    return llvm::all_of(numbers, [&](const APInt &number) {
      return isByte(zeroPoint->isSigned ? number.getSExtValue() : static_cast<int64_t>(number.getZExtValue()));
    });
  return getElementTypeOrSelf(zeroPoint->value).isInteger(8) && zeroPoint->isSigned == isSigned;
}

void QuantizedOperand::moveBytes(OpBuilder &builder) {
  for (Operation *op : llvm::reverse(moved))
    bytes = repeat(builder, op, bytes, zeroPoint);
  moved.clear();
}
