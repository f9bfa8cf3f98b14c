// Layers are in reverse order, so that each finds what it reads behind its own state: the state of the layer before it,
// or the part of the sequence. The columns of the product are in groups that have all gates of some units, so a block
// that multiplies a group has all that the cell of these units needs, and what blocks wait for in a step are states
// alone. A state becomes a result in the step after the one that computes it.
#include "passes/normalize/layers/JointProduct.h"

#include "passes/normalize/layers/StackedTensors.h"
#include "passes/support/EraseUnused.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tilewright;

namespace {
class Rewrite {
public:
  Rewrite(const LayerStack &stack, const JointProduct &joint)
      : stack(stack), joint(joint), model(this->stack.layers[1]), last(this->stack.layers.back().loop), builder(last),
        loc(last.getLoc()), layers(stack.layers.size()), waves(stack.steps() + layers),
        unitsOfGroup(joint.groups.columns / joint.gates) {}

  scf::ForOp run() {
    Value sequence = withoutWidening(builder, joint.sequence), weights = weightsOfLayers();
    sequence = reshape(builder, loc, sequence, sequenceType(typeOf(sequence).getElementType()));
    SmallVector<int64_t> firsts = llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(layers)));
    Value table = tableOfLayers(builder, loc, firsts, stack.steps(), waves);
    placeOutside();
    Value result = last.getResult(model.sequence);
    linalg::LinalgOp rounding = onlyRounding(result);
    auto collected = sequenceType(typeOf(rounding ? rounding->getResult(0) : result).getElementType());
    SmallVector<Value> initials = initialStates();
    initials.push_back(tensor::EmptyOp::create(builder, loc, collected.getShape(), collected.getElementType()));
    auto loop = scf::ForOp::create(builder, loc, index(0), index(waves), index(1), initials);
    builder.setInsertionPointToStart(loop.getBody());
    makeBody(loop, sequence, weights, table);
    replaceResults(loop, rounding);
    eraseLayers(stack);
    return loop;
  }

private:
  Value index(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }

  RankedTensorType sequenceType(Type element) {
    return RankedTensorType::get({stack.steps(), joint.rows, joint.units}, element);
  }

  /// Returns the type of a tensor of all layers with a row for each row of the state, [layer, row, group, column].
  RankedTensorType groupedType(Value tensor) {
    bool hasGates = typeOf(tensor).getShape().back() != joint.units;
    return RankedTensorType::get(
        {layers, joint.rows, joint.groups.count, hasGates ? joint.groups.columns : unitsOfGroup},
        typeOf(tensor).getElementType());
  }

  SmallVector<Value> initialStates() {
    SmallVector<Value> initials;
    for (unsigned number : model.states()) {
      SmallVector<Value> own = llvm::map_to_vector(
          llvm::reverse(stack.layers), [&](RecurrentLayer &layer) { return Value(layer.loop.getInitArgs()[number]); });
      auto type = RankedTensorType::get({layers, joint.rows, joint.units}, typeOf(own.front()).getElementType());
      initials.push_back(reshape(builder, loc, sideBySide(builder, loc, own), type));
    }
    return initials;
  }

  /// Returns what the layers read from outside in the place of what the second layer reads, the last layer first.
  SmallVector<Value> reversed(Value value) {
    SmallVector<Value> own;
    if (auto found = joint.ofFirst.find(value); found != joint.ofFirst.end()) {
      own = stack.ofProjections.find(value)->second;
      own.insert(own.begin(), found->second);
    } else {
      own = stack.ofCells.find(value)->second;
    }
    std::reverse(own.begin(), own.end());
    return own;
  }

  /// Moves the gates of a unit together, such that the last dim becomes [group, column].
  Value group(Value tensor) {
    RankedTensorType type = typeOf(tensor);
    SmallVector<int64_t> shape(type.getShape().drop_back()), order = llvm::to_vector(llvm::seq<int64_t>(shape.size()));
    if (type.getShape().back() == joint.units) {
      llvm::append_values(shape, joint.groups.count, unitsOfGroup);
      return reshape(builder, loc, tensor, RankedTensorType::get(shape, type.getElementType()));
    }
    int64_t first = order.size();
    SmallVector<int64_t> apart(shape), together(shape), grouped(shape);
    llvm::append_values(apart, joint.gates, joint.groups.count, unitsOfGroup);
    llvm::append_values(together, joint.groups.count, joint.gates, unitsOfGroup);
    llvm::append_values(grouped, joint.groups.count, joint.groups.columns);
    llvm::append_values(order, first + 1, first, first + 2);
    Value expanded = reshape(builder, loc, tensor, RankedTensorType::get(apart, type.getElementType()));
    Value empty = tensor::EmptyOp::create(builder, loc, together, type.getElementType());
    Value moved = linalg::TransposeOp::create(builder, loc, expanded, empty, order)->getResult(0);
    return reshape(builder, loc, moved, RankedTensorType::get(grouped, type.getElementType()));
  }

  /// Returns the weights of what the layers read, and behind them along K those of their states.
  Value weightsOfLayers() {
    SmallVector<Value> weights = reversed(joint.products.projection->getOperand(1));
    llvm::append_range(weights, reversed(joint.products.cell->getOperand(1)));
    narrowAll(builder, weights); // the product widens them
    ArrayRef<Value> all(weights);
    SmallVector<Value> both{sideBySide(builder, loc, all.take_front(layers)),
                            sideBySide(builder, loc, all.drop_front(layers))};
    return group(tensor::ConcatOp::create(builder, loc, /*dim=*/1, both));
  }

  /// Puts tensors that the layers read from outside side by side, in front of the loop.
  void placeOutside() {
    SmallVector<Operation *> ops(joint.between);
    for (Operation &op : model.loop.getBody()->without_terminator())
      if (&op != joint.products.cell)
        ops.push_back(&op);
    for (Operation *op : ops)
      if (auto structured = dyn_cast<linalg::LinalgOp>(op))
        for (Value value : structured.getDpsInputs())
          if (bool isOutside = joint.ofFirst.contains(value) || stack.ofCells.contains(value);
              isOutside && isa<RankedTensorType>(value.getType()) && !outside.contains(value))
            outside[value] = group(sideBySide(builder, loc, reversed(value)));
  }

  void makeBody(scf::ForOp loop, Value sequence, Value weights, Value table) {
    Value step = loop.getInductionVar(), state = loop.getRegionIterArgs()[model.position(model.state)];
    for (auto [number, argument] : llvm::zip_first(model.states(), loop.getRegionIterArgs())) {
      BlockArgument own = model.loop.getRegionIterArg(number);
      made[own] = reshape(builder, loc, argument, groupedType(own));
    }
    linalg::LinalgOp cell = joint.products.cell;
    made[joint.products.projection->getResult(0)] = stackedProduct(
        builder, loc, cell, groupedType(cell->getResult(0)), readIn(step, sequence, state), weights);
    for (Operation *op : joint.between)
      make(op);
    made[joint.sum->getResult(0)] = made.lookup(model.part.getSource());
    for (Operation &op : model.loop.getBody()->without_terminator())
      if (&op != model.part && &op != model.collected && &op != joint.products.cell && &op != joint.sum &&
          !isa<tensor::EmptyOp, linalg::FillOp>(op))
        make(&op);
    SmallVector<Value> results;
    Value atWork = layersAtWork(builder, loc, table, step, layers);
    for (auto [number, argument] : llvm::zip_first(model.states(), loop.getRegionIterArgs())) {
      Value next = made.lookup(model.loop.getYieldedValues()[number]),
            before = made.lookup(model.loop.getRegionIterArg(number));
      results.push_back(
          reshape(builder, loc, keepOthers(builder, loc, next, before, atWork), typeOf(argument)));
    }
    results.push_back(collect(step, state, loop.getRegionIterArgs().back()));
    scf::YieldOp::create(builder, loc, results);
    eraseUnused(*loop.getBody());
  }

  /// Returns what the layers multiply in a step: what they read, and behind it along K their states. The first layer
  /// reads the part of the sequence, and the others the state of the layer before.
  Value readIn(Value step, Value sequence, Value state) {
    Value at = arith::MinSIOp::create(builder, loc, step, index(stack.steps() - 1));
    Value part = convert<arith::ExtFOp>(rows(builder, loc, sequence, at, 1), typeOf(state).getElementType());
    Value others = rows(builder, loc, state, builder.getIndexAttr(1), layers - 1);
    Value read = tensor::ConcatOp::create(builder, loc, /*dim=*/0, ValueRange{others, part});
    return tensor::ConcatOp::create(builder, loc, /*dim=*/2, ValueRange{read, state});
  }

  /// Converts the elements of a tensor, unless they have the type.
  template <typename Conversion> Value convert(Value tensor, Type element) {
    RankedTensorType type = typeOf(tensor);
    if (type.getElementType() == element)
      return tensor;
    Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), element);
    AffineMap all = builder.getMultiDimIdentityMap(type.getRank());
    SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
    auto body = [&](OpBuilder &b, Location at, ValueRange values) {
      Value converted = Conversion::create(b, at, element, values[0]);
      linalg::YieldOp::create(b, at, converted);
    };
    return linalg::GenericOp::create(builder, loc, TypeRange{empty.getType()}, ValueRange{tensor}, ValueRange{empty},
                                     ArrayRef<AffineMap>{all, all}, iterators, body)
        .getResult(0);
  }

  /// Makes an op of the second layer again for all layers, in groups of columns.
  void make(Operation *op) {
    Value result = op->getResult(0);
    RankedTensorType type = groupedType(result);
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
      SmallVector<int64_t> offsets(4, 0);
      offsets.back() = slice.getStaticOffsets().back() / joint.units * unitsOfGroup;
      made[result] = sliceOf(builder, loc, made.lookup(slice.getSource()), offsets, type.getShape());
      return;
    }
    auto structured = dyn_cast<linalg::LinalgOp>(op);
    if (!structured) {
      made[result] = made.lookup(op->getOperand(0)); // a reshape
      return;
    }
    AffineMap all = builder.getMultiDimIdentityMap(4), column = all.getSubMap({0, 2, 3});
    SmallVector<Value> inputs;
    SmallVector<AffineMap> maps;
    for (Value value : structured.getDpsInputs()) {
      bool isTensor = isa<RankedTensorType>(value.getType()), isOutside = outside.contains(value);
      inputs.push_back(!isTensor ? value : isOutside ? outside.lookup(value) : made.lookup(value));
      maps.push_back(!isTensor ? AffineMap::get(4, 0, builder.getContext()) : isOutside ? column : all);
    }
    maps.push_back(all);
    Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
    SmallVector<utils::IteratorType> iterators(4, utils::IteratorType::parallel);
    auto again = linalg::GenericOp::create(builder, loc, TypeRange{type}, inputs, ValueRange{empty}, maps, iterators);
    IRMapping mapping;
    op->getRegion(0).cloneInto(&again.getRegion(), mapping);
    made[result] = again.getResult(0);
  }

  /// Writes the state of the last layer, which the step before has computed, where it belongs in the sequence. What is
  /// written before that layer begins is overwritten.
  Value collect(Value step, Value state, Value sequence) {
    RankedTensorType type = typeOf(sequence);
    Value own = convert<arith::TruncFOp>(rows(builder, loc, state, builder.getIndexAttr(0), 1), type.getElementType());
    Value before = arith::SubIOp::create(builder, loc, step, index(layers));
    SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0)), sizes,
        strides(type.getRank(), builder.getIndexAttr(1));
    offsets.front() = arith::MaxSIOp::create(builder, loc, before, index(0)).getResult();
    for (int64_t size : typeOf(own).getShape())
      sizes.push_back(builder.getIndexAttr(size));
    return tensor::InsertSliceOp::create(builder, loc, own, sequence, offsets, sizes, strides);
  }

  void replaceResults(scf::ForOp loop, linalg::LinalgOp rounding) {
    moveReadersBehind(stack);
    builder.setInsertionPointAfter(loop);
    Value result = rounding ? rounding->getResult(0) : last.getResult(model.sequence);
    result.replaceAllUsesWith(reshape(builder, loc, loop.getResults().back(), typeOf(result)));
    for (auto [layer, own] : llvm::enumerate(stack.layers))
      for (unsigned number : model.states()) {
        Value state = own.loop.getResult(number);
        auto isBehind = [&](OpOperand &use) { return isUsedBehind(stack, use); };
        if (llvm::none_of(state.getUses(), isBehind))
          continue;
        int64_t at = layers - 1 - static_cast<int64_t>(layer);
        Value part = rows(builder, loc, loop.getResult(model.position(number)), builder.getIndexAttr(at), 1);
        state.replaceUsesWithIf(reshape(builder, loc, part, typeOf(state)), isBehind);
      }
    for (Operation *op = rounding; op && op != last;) {
      Operation *before = op->getOperand(0).getDefiningOp();
      op->erase();
      op = before;
    }
  }

  LayerStack stack;
  JointProduct joint;
  RecurrentLayer model; ///< the second layer
  scf::ForOp last;
  OpBuilder builder;
  Location loc;
  int64_t layers, waves, unitsOfGroup;
  llvm::DenseMap<Value, Value> made;    ///< for all layers, for tensors of the second layer
  llvm::DenseMap<Value, Value> outside; ///< for all layers, for tensors that the second layer reads from outside
};
} // namespace

scf::ForOp tilewright::stackByJointProduct(const LayerStack &stack, const JointProduct &joint) {
  return Rewrite(stack, joint).run();
}
