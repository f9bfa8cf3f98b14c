// Layers are found from the last to the first: the parts that a loop reads are followed back to the sequence of another
// loop. Two layers are equal if their ops are, from what they yield back to values from outside.
#include "passes/normalize/layers/LayerStack.h"

#include "passes/graph/LoopBodies.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tilewright;

SmallVector<unsigned> RecurrentLayer::states() {
  SmallVector<unsigned> numbers;
  for (unsigned number = 0; number < loop.getNumResults(); ++number)
    if (number != sequence)
      numbers.push_back(number);
  return numbers;
}

/// Returns true if the slice is all of a tensor at the position of the loop's step along the first dim.
static bool isStepOf(OffsetSizeAndStrideOpInterface slice, ArrayRef<int64_t> shape, scf::ForOp loop) {
  if (shape.empty() || !slice.hasUnitStride() || ShapedType::isDynamicShape(slice.getStaticSizes()))
    return false;
  SmallVector<OpFoldResult> offsets = slice.getMixedOffsets();
  auto first = dyn_cast<Value>(offsets.front());
  return first == loop.getInductionVar() && slice.getStaticSizes().front() == 1 &&
         slice.getStaticSizes().drop_front() == shape.drop_front() &&
         llvm::all_of(llvm::drop_begin(offsets), [](OpFoldResult offset) { return isZeroInteger(offset); });
}

/// Returns true for ops of a cell that can be given a first dim for the layers.
static bool canBeStacked(Operation &op) {
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  if (structured)
    return structured.hasPureTensorSemantics() && !structured.hasIndexSemantics() && !structured.hasDynamicShape();
  auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
  if (slice)
    return slice.hasUnitStride() && !ShapedType::isDynamicShape(slice.getStaticOffsets()) &&
           !ShapedType::isDynamicShape(slice.getStaticSizes());
  return isa<tensor::EmptyOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op) && op.getNumOperands() <= 1;
}

static std::optional<RecurrentLayer> layerOf(scf::ForOp loop) {
  std::optional<int64_t> steps = tripCount(loop);
  if (!steps || *steps < 2 || !isZeroInteger(loop.getLowerBound()) || !isOneInteger(loop.getStep()))
    return std::nullopt;
  RecurrentLayer layer{loop, *steps, {}, {}, 0, 0, {}};
  for (auto [number, next] : llvm::enumerate(loop.getYieldedValues())) {
    auto insert = next.getDefiningOp<tensor::InsertSliceOp>();
    BlockArgument whole = loop.getRegionIterArg(number);
    auto type = dyn_cast<RankedTensorType>(next.getType());
    if (!type || !type.hasStaticShape())
      return std::nullopt;
    if (!insert || insert->getBlock() != loop.getBody())
      continue;
    if (layer.collected || insert.getDest() != whole || !whole.hasOneUse() || !insert->hasOneUse() ||
        !loop.getInitArgs()[number].getDefiningOp<tensor::EmptyOp>() ||
        !isStepOf(insert, insert.getDestType().getShape(), loop) || insert.getDestType().getDimSize(0) != *steps)
      return std::nullopt;
    layer.collected = insert;
    layer.sequence = number;
  }
  if (!layer.collected)
    return std::nullopt;
  ValueRange yielded = loop.getYieldedValues();
  auto state = llvm::find(yielded, layer.collected.getSource());
  if (state == yielded.end())
    return std::nullopt;
  layer.state = state - yielded.begin();
  for (Operation &op : loop.getBody()->without_terminator()) {
    auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
    bool isPart = slice && !layer.part && isStepOf(slice, slice.getSourceType().getShape(), loop) &&
                  slice.getSourceType().getDimSize(0) == *steps && loop.isDefinedOutsideOfLoop(slice.getSource());
    if (isPart)
      layer.part = slice;
    else if (&op != layer.collected && !canBeStacked(op))
      return std::nullopt;
  }
  return layer.part ? std::optional(layer) : std::nullopt;
}

/// Returns true if an op computes the elements of a step, which are those at one position along the first dim of its
/// result, from those of the same step of what depends on the sequence.
static bool keepsSteps(Operation *op, int64_t steps, llvm::function_ref<bool(Value)> depends) {
  auto firstDim = [](Value tensor) { return cast<RankedTensorType>(tensor.getType()).getDimSize(0); };
  if (op->getNumResults() != 1 || !canBeStacked(*op) || firstDim(op->getResult(0)) % steps != 0)
    return false;
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
    return firstDim(op->getOperand(0)) % steps == 0;
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  if (!structured)
    return false;
  AffineMap result = structured.getIndexingMapMatchingResult(op->getResult(0));
  auto step = dyn_cast<AffineDimExpr>(result.getResult(0));
  return step && llvm::all_of(structured.getDpsInputOperands(), [&](OpOperand *operand) {
           AffineMap map = structured.getMatchingIndexingMap(operand);
           ArrayRef<AffineExpr> indices = map.getResults();
           auto usesStep = [&](AffineExpr index) { return index.isFunctionOfDim(step.getPosition()); };
           if (!depends(operand->get()))
             return llvm::none_of(indices, usesStep);
           return indices.front() == step && llvm::none_of(indices.drop_front(), usesStep);
         });
}

/// Finds the ops between the sequence of a layer and the parts that the next one reads. Returns false if there are
/// others than such that keep steps apart.
static bool findProjection(RecurrentLayer &before, RecurrentLayer &layer) {
  Value sequence = before.loop.getResult(before.sequence);
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.filter = [&](Operation *op) { return op->getBlock() == before.loop->getBlock() && !isLoop(op); };
  options.omitBlockArguments = true;
  options.inclusive = true;
  Value parts = layer.part.getSource();
  if (parts == sequence || failed(getBackwardSlice(parts, &slice, options)))
    return false;
  llvm::DenseSet<Value> dependent{sequence};
  for (Operation *op : slice) { // producers come before their users
    if (llvm::none_of(op->getOperands(), [&](Value operand) { return dependent.contains(operand); }))
      continue;
    if (!keepsSteps(op, layer.steps, [&](Value value) { return dependent.contains(value); }))
      return false;
    dependent.insert(op->getResult(0));
    layer.projection.push_back(op);
  }
  return dependent.contains(parts);
}

namespace {
/// Compares two layers from results back to operands.
class Comparison {
public:
  using Values = llvm::MapVector<Value, Value>;

  /// Values for which `isInside` does not hold are from outside.
  Comparison(llvm::function_ref<bool(Value)> isInside, Values &outside) : isInside(isInside), outside(outside) {}

  void pair(Value first, Value second) { known[first] = second; }

  bool areEqual(Value first, Value second) {
    if (auto found = known.find(first); found != known.end())
      return found->second == second;
    if (first.getType() != second.getType())
      return false;
    known[first] = second;
    if (!isInside(first)) {
      outside[first] = second;
      // Only tensors can be stacked.
      return isa<RankedTensorType>(first.getType()) || first == second;
    }
    auto argument = dyn_cast<BlockArgument>(first);
    if (argument)
      return isa<BlockArgument>(second) && cast<BlockArgument>(second).getArgNumber() == argument.getArgNumber();
    Operation *op = first.getDefiningOp(), *other = second.getDefiningOp();
    if (!other || op->getName() != other->getName() || op->getAttrDictionary() != other->getAttrDictionary() ||
        cast<OpResult>(first).getResultNumber() != cast<OpResult>(second).getResultNumber() ||
        op->getNumOperands() != other->getNumOperands() || op->getNumRegions() != other->getNumRegions())
      return false;
    for (auto [region, otherRegion] : llvm::zip_equal(op->getRegions(), other->getRegions()))
      if (!OperationEquivalence::isRegionEquivalentTo(&region, &otherRegion, OperationEquivalence::IgnoreLocations))
        return false;
    auto structured = dyn_cast<linalg::LinalgOp>(op);
    for (auto [operand, otherOperand] : llvm::zip_equal(op->getOpOperands(), other->getOpOperands())) {
      bool isInit = structured && structured.isDpsInit(&operand);
      if (isInit ? !startEqually(operand.get(), otherOperand.get()) : !areEqual(operand.get(), otherOperand.get()))
        return false;
    }
    return true;
  }

private:
  /// Returns true if both accumulators are uninitialised, or filled with the same number.
  static bool startEqually(Value first, Value second) {
    if (first.getType() != second.getType())
      return false;
    auto fill = first.getDefiningOp<linalg::FillOp>(), other = second.getDefiningOp<linalg::FillOp>();
    if (fill || other)
      return fill && other && fill.value() == other.value();
    return first.getDefiningOp<tensor::EmptyOp>() && second.getDefiningOp<tensor::EmptyOp>();
  }

  llvm::function_ref<bool(Value)> isInside;
  Values &outside;
  llvm::DenseMap<Value, Value> known;
};

/// Makes stacks of the layers of a block.
class StackFinder {
public:
  explicit StackFinder(Block &block) : block(block) {}

  std::vector<LayerStack> find() {
    std::vector<RecurrentLayer> layers;
    for (auto loop : block.getOps<scf::ForOp>())
      if (std::optional<RecurrentLayer> layer = layerOf(loop))
        layers.push_back(*layer);
    std::vector<LayerStack> stacks;
    for (RecurrentLayer &layer : layers)
      if (stacks.empty() || !append(stacks.back(), layer))
        stacks.push_back({{layer}, {}, {}, {}});
    llvm::erase_if(stacks, [&](LayerStack &stack) { return stack.layers.size() < 2 || !canRunAtOnce(stack); });
    return stacks;
  }

private:
  /// Adds a layer to the stack if it reads the last layer's sequence and equals it.
  bool append(LayerStack &stack, RecurrentLayer layer) {
    RecurrentLayer &last = stack.layers.back();
    if (layer.steps != last.steps || layer.loop.getNumResults() != last.loop.getNumResults() ||
        layer.sequence != last.sequence || layer.state != last.state || !findProjection(last, layer))
      return false;
    // The second layer is the one that others are compared with, once it is known.
    RecurrentLayer &model = stack.layers.size() == 1 ? layer : stack.layers[1];
    auto isInCell = [&](Value value) { return value.getParentRegion() == &model.loop.getRegion(); };
    auto isProjected = [&](Value value) { return llvm::is_contained(model.projection, value.getDefiningOp()); };
    Comparison::Values first, cell, projection;
    if (!areCellsEqual(model, layer, isInCell, cell) ||
        (stack.layers.size() == 1 && !areCellsEqual(model, last, isInCell, first)))
      return false;
    Comparison compared(isProjected, projection);
    compared.pair(sequenceBefore(stack, 1), sequenceBefore(stack, stack.layers.size()));
    if (!compared.areEqual(model.part.getSource(), layer.part.getSource()))
      return false;
    add(stack.ofCells, first);
    add(stack.ofCells, cell);
    add(stack.ofProjections, projection);
    stack.layers.push_back(std::move(layer));
    return true;
  }

  static Value sequenceBefore(LayerStack &stack, size_t number) {
    RecurrentLayer &before = stack.layers[number - 1];
    return before.loop.getResult(before.sequence);
  }

  static bool areCellsEqual(RecurrentLayer &model, RecurrentLayer &layer, llvm::function_ref<bool(Value)> isInCell,
                            Comparison::Values &outside) {
    Comparison compared(isInCell, outside);
    if (model.part.getType() != layer.part.getType() || model.part.getSourceType() != layer.part.getSourceType())
      return false;
    compared.pair(model.part.getResult(), layer.part.getResult());
    auto yielded = llvm::zip_equal(model.loop.getYieldedValues(), layer.loop.getYieldedValues());
    for (auto [number, pair] : llvm::enumerate(yielded)) {
      auto [first, second] = pair;
      if (number != model.sequence && !compared.areEqual(first, second))
        return false;
    }
    return model.collected.getStaticSizes() == layer.collected.getStaticSizes() &&
           model.collected.getDestType() == layer.collected.getDestType();
  }

  static void add(llvm::MapVector<Value, SmallVector<Value>> &lists, const Comparison::Values &values) {
    for (auto [value, other] : values)
      lists[value].push_back(other);
  }

  /// Returns true if one loop at the place of the last one can replace all of them: a layer depends on others by its
  /// projection only. Finds what else reads their results in front of the last loop.
  static bool canRunAtOnce(LayerStack &stack) {
    Operation *last = stack.layers.back().loop;
    llvm::DenseSet<Operation *> own, readers;
    for (RecurrentLayer &layer : stack.layers) {
      own.insert(layer.loop);
      own.insert(layer.projection.begin(), layer.projection.end());
    }
    // Returns false if the reader belongs to a layer, or has effects whose order counts.
    auto comesLater = [&](Operation *user) {
      Operation *reader = last->getBlock()->findAncestorOpInBlock(*user);
      if (!reader || own.contains(reader))
        return false;
      if (reader->isBeforeInBlock(last))
        readers.insert(reader);
      return !readers.contains(reader) || isMemoryEffectFree(reader);
    };
    for (size_t number = 0; number < stack.layers.size(); ++number) {
      RecurrentLayer &layer = stack.layers[number];
      for (OpOperand &use : layer.loop->getUses()) {
        bool isNext = number + 1 < stack.layers.size() &&
                      llvm::is_contained(stack.layers[number + 1].projection, use.getOwner()) &&
                      use.get() == layer.loop.getResult(layer.sequence);
        if (!isNext && !comesLater(use.getOwner()))
          return false;
      }
      for (Operation *op : layer.projection)
        if (llvm::any_of(op->getUsers(), [&](Operation *user) {
              return user != layer.part && !llvm::is_contained(layer.projection, user);
            }))
          return false;
    }
    for (Operation &op : *last->getBlock()) {
      if (&op == last)
        return true;
      if (!readers.contains(&op))
        continue;
      stack.readers.push_back(&op);
      if (!llvm::all_of(op.getUsers(), comesLater)) // adds readers behind this one
        return false;
    }
    return true;
  }

  Block &block;
};
} // namespace

std::vector<LayerStack> tilewright::findLayerStacks(func::FuncOp function) {
  if (!function.getBody().hasOneBlock())
    return {};
  return StackFinder(function.getBody().front()).find();
}
