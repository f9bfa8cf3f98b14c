// A layer is followed from the product of its projection to its part, and the first layer beside the second one from
// its part back to its product.
#include "passes/normalize/layers/JointProduct.h"

#include "passes/normalize/layers/StackedTensors.h"
#include "passes/target/AccessBytes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/OperationSupport.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tilewright;

/// Returns true for an elementwise op whose operands from inside have the index of its result, and those from outside
/// that of the last dim.
static bool isColumnwise(linalg::LinalgOp op, llvm::function_ref<bool(Value)> isInside) {
  if (op.getNumLoops() != op.getNumParallelLoops() || op->getNumResults() != 1 || op.hasIndexSemantics() ||
      !op.getIndexingMapMatchingResult(op->getResult(0)).isIdentity())
    return false;
  AffineExpr last = getAffineDimExpr(op.getNumLoops() - 1, op.getContext());
  return llvm::all_of(op.getDpsInputOperands(), [&](OpOperand *operand) {
    AffineMap map = op.getMatchingIndexingMap(operand);
    if (!isa<RankedTensorType>(operand->get().getType()))
      return true;
    if (isInside(operand->get()))
      return map.isIdentity() && !isa_and_present<linalg::FillOp, tensor::EmptyOp>(operand->get().getDefiningOp());
    return map.getNumResults() == 1 && map.getResult(0) == last;
  });
}

/// Returns true for a reshape that keeps the last dim.
static bool keepsColumns(Operation *op) {
  return isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op) &&
         typeOf(op->getOperand(0)).getShape().back() == typeOf(op->getResult(0)).getShape().back();
}

/// Returns true if an op adds its two operands element by element.
static bool isSum(linalg::LinalgOp op) {
  if (op.getNumDpsInputs() != 2 || !llvm::hasNItems(*op.getBlock(), 2))
    return false;
  auto sum = dyn_cast<arith::AddFOp>(op.getBlock()->front());
  auto argument = [&](unsigned number) -> Value { return op.getBlock()->getArgument(number); };
  return sum && op.getBlock()->getTerminator()->getOperand(0) == sum.getResult() &&
         ((sum.getLhs() == argument(0) && sum.getRhs() == argument(1)) ||
          (sum.getLhs() == argument(1) && sum.getRhs() == argument(0)));
}

namespace {
class Search {
public:
  Search(const LayerStack &given, const Target &target)
      : stack(given), target(target), first(stack.layers.front()), model(stack.layers[1]) {}

  std::optional<JointProduct> find() {
    std::optional<StateProducts> products = findStateProducts(stack, /*strict=*/false);
    if (!products)
      return std::nullopt;
    joint.products = *products;
    RankedTensorType product = typeOf(products->cell->getResult(0));
    joint.rows = product.getDimSize(0);
    joint.units = typeOf(products->cell->getOperand(0)).getDimSize(1);
    joint.gates = product.getDimSize(1) / joint.units;
    if (joint.gates * joint.units != product.getDimSize(1) || !findSum() || !findBetween() || !followFirst() ||
        !isCellColumnwise() || !areOthersUnread() || !areAligned() || !haveGroups())
      return std::nullopt;
    return joint;
  }

private:
  bool isInCell(Value value) { return value.getParentRegion() == &model.loop.getRegion(); }

  bool findSum() {
    Value product = joint.products.cell->getResult(0), part = model.part.getResult();
    if (!product.hasOneUse() || !part.hasOneUse() || *product.user_begin() != *part.user_begin())
      return false;
    joint.sum = dyn_cast<linalg::LinalgOp>(*product.user_begin());
    return joint.sum && isSum(joint.sum) && isColumnwise(joint.sum, [&](Value value) { return isInCell(value); });
  }

  bool findBetween() {
    Value value = joint.products.projection->getResult(0), end = model.part.getSource();
    while (value != end) {
      if (!value.hasOneUse() || !llvm::is_contained(model.projection, *value.user_begin()))
        return false;
      Operation *op = *value.user_begin();
      auto structured = dyn_cast<linalg::LinalgOp>(op);
      auto isInside = [&](Value operand) { return operand == value; };
      if (structured ? !isColumnwise(structured, isInside) : !keepsColumns(op))
        return false;
      joint.between.push_back(op);
      value = op->getResult(0);
    }
    return true;
  }

  /// Finds what the first layer reads, whose projection has the same ops from the product on.
  bool followFirst() {
    Value other = first.part.getSource();
    SmallVector<Operation *> ops{joint.products.projection};
    llvm::append_range(ops, joint.between);
    for (size_t number = ops.size(); number-- > 0;) {
      Operation *op = ops[number], *own = other.getDefiningOp();
      if (!own || !areEqual(op, own))
        return false;
      for (OpOperand &operand : op->getOpOperands()) {
        Value read = own->getOperand(operand.getOperandNumber());
        auto structured = dyn_cast<linalg::LinalgOp>(op);
        if (structured && structured.isDpsInit(&operand))
          continue;
        if (read.getType() != operand.get().getType())
          return false;
        if (number > 0 && operand.get() == ops[number - 1]->getResult(0))
          other = read;
        else if (number == 0 && operand.getOperandNumber() == 0)
          joint.sequence = read;
        else if (isa<RankedTensorType>(read.getType())) {
          // The first layer has to read one tensor in its place wherever the second layer reads it.
          Value &known = joint.ofFirst.try_emplace(operand.get(), read).first->second;
          if (stack.ofCells.contains(operand.get()) || known != read)
            return false;
        } else if (read != operand.get())
          return false;
      }
    }
    auto product = cast<linalg::LinalgOp>(other.getDefiningOp());
    auto fill = product.getDpsInits().front().getDefiningOp<linalg::FillOp>();
    return fill && matchPattern(fill.value(), m_AnyZeroFloat());
  }

  static bool areEqual(Operation *op, Operation *other) {
    if (op->getName() != other->getName() || op->getAttrDictionary() != other->getAttrDictionary() ||
        op->getResultTypes() != other->getResultTypes() || op->getNumOperands() != other->getNumOperands())
      return false;
    return llvm::all_of(llvm::zip_equal(op->getRegions(), other->getRegions()), [](auto pair) {
      return OperationEquivalence::isRegionEquivalentTo(&std::get<0>(pair), &std::get<1>(pair),
                                                        OperationEquivalence::IgnoreLocations);
    });
  }

  /// Returns true if a tensor of the cell has a row for each row of the state, of units or of all their gates.
  bool hasColumns(Value tensor) {
    auto type = dyn_cast<RankedTensorType>(tensor.getType());
    if (!type || type.getRank() == 0)
      return false;
    int64_t columns = type.getShape().back();
    return (columns == joint.units || columns == joint.gates * joint.units) &&
           type.getNumElements() == joint.rows * columns;
  }

  bool isCellColumnwise() {
    for (auto [number, next] : llvm::enumerate(model.loop.getYieldedValues())) {
      BlockArgument state = model.loop.getRegionIterArg(number);
      if (number != model.sequence &&
          (!isInCell(next) || !hasColumns(state) || typeOf(state).getShape().back() != joint.units))
        return false;
    }
    return llvm::all_of(model.loop.getBody()->without_terminator(), [&](Operation &op) {
      if (&op == model.part || &op == model.collected || &op == joint.products.cell || &op == joint.sum ||
          isa<tensor::EmptyOp, linalg::FillOp>(op))
        return true;
      if (op.getNumResults() != 1 || !hasColumns(op.getResult(0)))
        return false;
      if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
        return isGate(slice);
      auto structured = dyn_cast<linalg::LinalgOp>(op);
      return structured ? isColumnwise(structured, [&](Value value) { return isInCell(value); }) : keepsColumns(&op);
    });
  }

  bool isGate(tensor::ExtractSliceOp slice) {
    ArrayRef<int64_t> offsets = slice.getStaticOffsets();
    return isInCell(slice.getSource()) && hasColumns(slice.getSource()) &&
           slice.getType().getRank() == slice.getSourceType().getRank() &&
           slice.getType().getShape().back() == joint.units && offsets.back() % joint.units == 0 &&
           llvm::all_of(offsets.drop_back(), [](int64_t offset) { return offset == 0; });
  }

  /// Returns true if only the next layer reads the sequence of each layer but the last.
  bool areOthersUnread() {
    return llvm::all_of(llvm::seq<size_t>(0, stack.layers.size() - 1), [&](size_t number) {
      RecurrentLayer &layer = stack.layers[number], &next = stack.layers[number + 1];
      return llvm::all_of(layer.loop.getResult(layer.sequence).getUsers(),
                          [&](Operation *user) { return llvm::is_contained(next.projection, user); });
    });
  }

  bool areAligned() {
    auto isAligned = [&](Type element) {
      return joint.rows * joint.units * tile::elementBytes(element) % kAccessBytes == 0;
    };
    Value sequence = stack.layers.back().loop.getResult(model.sequence);
    auto rounding = onlyRounding(sequence);
    return isAligned(narrowElement(joint.sequence)) &&
           isAligned(typeOf(rounding ? rounding->getResult(0) : sequence).getElementType());
  }

  bool haveGroups() {
    Value own = joint.products.cell->getOperand(1), next = joint.products.projection->getOperand(1);
    int64_t columns = joint.gates * joint.units,
            bytes = std::max(tile::elementBytes(narrowElement(own)), tile::elementBytes(narrowElement(next)));
    ColumnGroups groups = groupColumns(columns, 2 * joint.units * bytes, stack.layers.size(), target);
    joint.groups = groups;
    return groups.count > 1 && groups.count * groups.columns == columns && groups.columns % joint.gates == 0;
  }

  LayerStack stack;
  const Target &target;
  RecurrentLayer first, model; ///< the first and the second layer
  JointProduct joint;
};
} // namespace

std::optional<JointProduct> tilewright::findJointProduct(const LayerStack &stack, const Target &target,
                                                         NumericsMode numerics) {
  return numerics == NumericsMode::strict ? std::nullopt : Search(stack, target).find();
}
