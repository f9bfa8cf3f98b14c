#include "passes/normalize/MatchSorts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <limits>

using namespace mlir;
using namespace tilewright;

namespace {
/// The order that the predicate of a comparison stands for.
struct Direction {
  bool isDescending, isUnsigned;
};

std::optional<Direction> directionOf(Operation *compare) {
  if (auto floats = dyn_cast<arith::CmpFOp>(compare)) {
    using P = arith::CmpFPredicate;
    if (llvm::is_contained({P::OGT, P::OGE, P::UGT, P::UGE}, floats.getPredicate()))
      return Direction{true, false};
    if (llvm::is_contained({P::OLT, P::OLE, P::ULT, P::ULE}, floats.getPredicate()))
      return Direction{false, false};
    return std::nullopt;
  }
  auto integers = dyn_cast<arith::CmpIOp>(compare);
  if (!integers)
    return std::nullopt;
  using P = arith::CmpIPredicate;
  switch (integers.getPredicate()) {
  case P::sgt:
  case P::sge:
    return Direction{true, false};
  case P::ugt:
  case P::uge:
    return Direction{true, true};
  case P::slt:
  case P::sle:
    return Direction{false, false};
  case P::ult:
  case P::ule:
    return Direction{false, true};
  default:
    return std::nullopt;
  }
}

bool hasKeys(Type element) {
  if (auto integer = dyn_cast<IntegerType>(element))
    return integer.getWidth() > 1 && integer.getWidth() <= 64;
  return element.isF16() || element.isBF16() || element.isF32() || element.isF64();
}
} // namespace

std::optional<int64_t> tilewright::takenFromFront(Operation *user, int64_t dim) {
  auto slice = dyn_cast<tensor::ExtractSliceOp>(user);
  if (!slice || !slice.hasUnitStride() || slice.getType().getRank() != slice.getSourceType().getRank() ||
      !slice.getType().hasStaticShape())
    return std::nullopt;
  for (auto [number, offset] : llvm::enumerate(slice.getStaticOffsets()))
    if (offset != 0 || (int64_t(number) != dim &&
                        slice.getType().getDimSize(number) != slice.getSourceType().getDimSize(number)))
      return std::nullopt;
  return slice.getType().getDimSize(dim);
}

std::optional<Order> tilewright::orderOf(Operation *op) {
  Block &block = op->getRegion(0).front();
  Operation *compare = &block.front();
  std::optional<Direction> direction = directionOf(compare);
  if (!llvm::hasNItems(block, 2) || !direction || compare->getNextNode()->getOperands() != compare->getResults())
    return std::nullopt;
  auto first = dyn_cast<BlockArgument>(compare->getOperand(0));
  auto second = dyn_cast<BlockArgument>(compare->getOperand(1));
  if (!first || !second || first == second || first.getArgNumber() / 2 != second.getArgNumber() / 2 ||
      !hasKeys(first.getType()))
    return std::nullopt;
  bool isDescending = direction->isDescending == (first.getArgNumber() < second.getArgNumber());
  return Order{first.getArgNumber() / 2, isDescending, direction->isUnsigned};
}

bool tilewright::comparesElements(Operation *op) {
  if (op->getNumRegions() != 1 || !op->getRegion(0).hasOneBlock() ||
      op->getRegion(0).getNumArguments() != 2 * op->getNumOperands())
    return false;
  Block &block = op->getRegion(0).front();
  return block.back().getNumOperands() == 1 && block.back().getOperand(0).getType().isInteger(1) &&
         llvm::all_of(llvm::drop_end(block),
                      [](Operation &each) { return each.getNumRegions() == 0 && isMemoryEffectFree(&each); }) &&
         llvm::all_of(block, [&](Operation &each) {
           return llvm::all_of(each.getOperands(), [&](Value used) {
             return used.getParentBlock() == &block || used.getDefiningOp<arith::ConstantOp>();
           });
         });
}

namespace {
int64_t keptOf(Operation *op, int64_t dim, int64_t length) {
  int64_t kept = 0;
  for (Operation *user : op->getUsers())
    kept = std::max(kept, takenFromFront(user, dim).value_or(length));
  return kept;
}

/// Returns true if floats are compared for less or greater, of which a NaN is neither.
bool comparesFloatsAsTheyAre(Operation *op) {
  return llvm::any_of(op->getRegion(0).front(), [](Operation &each) {
    return isa<arith::CmpFOp>(each) && directionOf(&each).has_value();
  });
}

/// Returns the dim along which the op sorts tensors of known shape.
std::optional<int64_t> dimOf(Operation *op) {
  auto properties = dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
  auto dimension = properties ? properties.getAs<IntegerAttr>("dimension") : IntegerAttr();
  auto type = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
  int64_t dim = dimension ? dimension.getInt() : -1;
  if (!type || !type.hasStaticShape() || type.getNumElements() == 0 || dim < 0 || dim >= type.getRank() ||
      type.getDimSize(dim) > std::numeric_limits<int32_t>::max())
    return std::nullopt;
  return dim;
}

/// Returns true if the elements that a search begins with come after all others.
bool isLast(Value init, bool isDescending) {
  auto fill = init.getDefiningOp<linalg::FillOp>();
  auto constant = fill ? fill.getInputs()[0].getDefiningOp<arith::ConstantOp>() : arith::ConstantOp();
  if (!constant)
    return false;
  if (auto number = dyn_cast<FloatAttr>(constant.getValue()))
    return number.getValue().isInfinity() && number.getValue().isNegative() == isDescending;
  auto number = dyn_cast<IntegerAttr>(constant.getValue());
  return number && (isDescending ? number.getValue().isMinSignedValue() : number.getValue().isMaxSignedValue());
}
} // namespace

std::optional<Sort> tilewright::matchTopK(Operation *op) {
  if (op->getNumOperands() != 3 || op->getNumResults() != 2 || op->getNumRegions() != 1 ||
      !op->getRegion(0).hasOneBlock() || op->getRegion(0).getNumArguments() != 2)
    return std::nullopt;
  std::optional<int64_t> dim = dimOf(op);
  std::optional<Order> order = orderOf(op);
  auto values = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  auto positions = dyn_cast<RankedTensorType>(op->getResult(1).getType());
  if (!dim || !order || order->isUnsigned || !values || !values.hasStaticShape() || !positions ||
      !positions.getElementType().isInteger() || !isLast(op->getOperand(1), order->isDescending) ||
      values.getDimSize(*dim) > cast<RankedTensorType>(op->getOperand(0).getType()).getDimSize(*dim))
    return std::nullopt;
  order->isTotal = true; // XLA's, whose search this is
  return Sort{*dim, values.getDimSize(*dim), order};
}

std::optional<Sort> tilewright::matchSort(Operation *op) {
  if (op->getNumOperands() == 0 || op->getOperandTypes() != op->getResultTypes() || op->use_empty() ||
      !comparesElements(op))
    return std::nullopt;
  std::optional<int64_t> dim = dimOf(op);
  if (!dim)
    return std::nullopt;
  auto type = cast<RankedTensorType>(op->getOperand(0).getType());
  for (Type other : op->getOperandTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(other); !tensor || tensor.getShape() != type.getShape())
      return std::nullopt;
  std::optional<Order> order = orderOf(op);
  if (!order && comparesFloatsAsTheyAre(op))
    return std::nullopt;
  return Sort{*dim, keptOf(op, *dim, type.getDimSize(*dim)), order};
}
