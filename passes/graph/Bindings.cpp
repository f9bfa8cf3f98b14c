#include "passes/graph/Bindings.h"

#include "passes/graph/ConstantOperand.h"

#include "dialects/tile/TileDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace tilewright;

namespace {
bool isSmall(Value tensor, const GpuCosts &costs) {
  auto type = cast<RankedTensorType>(tensor.getType());
  return type.getNumElements() * tile::elementBytes(type.getElementType()) <= costs.repeatedWeightBytes;
}

/// Returns true if one op of the block reads the tensor, as an operand or in a nested region.
bool hasOneReader(Value tensor) {
  llvm::SmallPtrSet<Operation *, 2> readers;
  Block *block = tensor.getDefiningOp()->getBlock();
  for (Operation *user : tensor.getUsers())
    readers.insert(block->findAncestorOpInBlock(*user));
  return readers.size() == 1;
}

/// Returns true if a weight may be stored once more: it is small, or nothing else reads the constants and parameters
/// that it is made of. The answer is the same for a weight and for a layout of it that is made later, so the plan and
/// code generation agree.
bool mayBeStoredAgain(Value weight, const GpuCosts &costs) {
  bool isOnly = hasOneReader(weight);
  while (weight.getDefiningOp()->getNumOperands() > 0) {
    weight = weight.getDefiningOp()->getOperand(0);
    isOnly &= hasOneReader(weight);
  }
  return isOnly || isSmall(weight, costs);
}
} // namespace

DenseElementsAttr tilewright::constantBehindViews(Value tensor) {
  while (isa_and_present<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(tensor.getDefiningOp()))
    tensor = tensor.getDefiningOp()->getOperand(0);
  DenseElementsAttr elements;
  return matchPattern(tensor, m_Constant(&elements)) ? elements : DenseElementsAttr();
}

std::optional<WeightGroup> tilewright::weightGroupOf(Value input, const Target &target) {
  auto type = dyn_cast<RankedTensorType>(input.getType());
  if (!type || !type.hasStaticShape() || !type.getElementType().isIntOrFloat() ||
      type.getElementTypeBitWidth() % 8 != 0)
    return std::nullopt;
  if (constantBehindViews(input))
    return isSmall(input, target.costs.gpu) ? std::optional(WeightGroup{type.getElementType(), /*isConstant=*/true})
                                            : std::nullopt;
  if (!isMadeOfParameters(input) || !mayBeStoredAgain(input, target.costs.gpu))
    return std::nullopt;
  return WeightGroup{type.getElementType(), /*isConstant=*/false};
}

int64_t tilewright::countBindings(ArrayRef<Value> inputs, ArrayRef<Value> outputs,
                                  llvm::function_ref<bool(Value)> isPrivate, const Target &target) {
  int64_t bindings = inputs.size() + outputs.size();
  if (bindings <= target.maxBindings || !target.traits.sharesBindings)
    return bindings;
  SmallVector<WeightGroup> groups;
  for (Value input : inputs)
    if (std::optional<WeightGroup> group = weightGroupOf(input, target)) {
      if (!llvm::is_contained(groups, *group))
        groups.push_back(*group);
      --bindings;
    }
  int64_t own = llvm::count_if(outputs, isPrivate);
  return bindings + groups.size() - own + (own > 0);
}
