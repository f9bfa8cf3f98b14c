// The ops of the second layer are made again with a first dim for the layers; what the layers read in its place from
// outside is put side by side. The projection reads the states of all layers but the last in the step before. If it and
// the cell begin with matrix products, they are one: the state of a layer is multiplied by its own weights and by those
// of the next layer's projection (Souffle 6.1), so that a block can have columns of one layer. In the steps in which a
// layer has not begun, or has ended, it keeps its states.
#include "passes/normalize/layers/StackLayers.h"

#include "passes/normalize/layers/JointProduct.h"
#include "passes/normalize/layers/StackedLoop.h"
#include "passes/normalize/layers/StackedTensors.h"
#include "passes/support/EraseUnused.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// Makes ops again for several layers at once.
class Stacked {
public:
  Stacked(OpBuilder &builder, int64_t layers) : builder(builder), layers(layers) {}

  /// Has `tensor` stand for `all`, which has the layers as its first dim.
  void map(Value tensor, Value all) { stacked[tensor] = all; }
  Value lookup(Value tensor) const { return stacked.lookup(tensor); }
  /// Makes an op again that is the same for all layers.
  void copy(Operation *op) { builder.clone(*op, copies); }

  /// Makes an op whose result has `steps` times as many elements along its first dim as the one that is made.
  void make(Operation *op, int64_t steps) {
    Value result = op->getResult(0);
    RankedTensorType type = allOf(typeOf(result), steps);
    Location loc = op->getLoc();
    if (auto structured = dyn_cast<linalg::LinalgOp>(op)) {
      makeStructured(structured, steps);
      return;
    }
    Value source = stacked.lookup(op->getOperand(0));
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
      SmallVector<int64_t> offsets{0}, sizes{layers};
      llvm::append_range(offsets, slice.getStaticOffsets());
      llvm::append_range(sizes, slice.getStaticSizes());
      map(result, reshape(builder, loc, sliceOf(builder, loc, source, offsets, sizes), type));
      return;
    }
    auto collapse = dyn_cast<tensor::CollapseShapeOp>(op);
    SmallVector<ReassociationIndices> old =
        collapse ? collapse.getReassociationIndices() : cast<tensor::ExpandShapeOp>(op).getReassociationIndices();
    SmallVector<ReassociationIndices> groups{{0}};
    for (const ReassociationIndices &group : old)
      groups.push_back(llvm::map_to_vector<2>(group, [](int64_t dim) { return dim + 1; }));
    if (collapse)
      map(result, tensor::CollapseShapeOp::create(builder, loc, type, source, groups));
    else
      map(result, tensor::ExpandShapeOp::create(builder, loc, type, source, groups));
  }

private:
  RankedTensorType allOf(RankedTensorType type, int64_t steps) const {
    SmallVector<int64_t> shape(type.getShape());
    if (steps > 1)
      shape.front() /= steps;
    return withFirst(layers, RankedTensorType::get(shape, type.getElementType()));
  }

  void makeStructured(linalg::LinalgOp op, int64_t steps) {
    MLIRContext *context = builder.getContext();
    unsigned loops = op.getNumLoops();
    auto mapOf = [&](OpOperand &operand, bool isShared) {
      AffineMap map = op.getMatchingIndexingMap(&operand).shiftDims(1);
      return isShared ? map : map.insertResult(getAffineDimExpr(0, context), 0);
    };
    SmallVector<Value> inputs, inits;
    SmallVector<AffineMap> maps;
    for (OpOperand *operand : op.getDpsInputOperands()) {
      bool isShared = !stacked.contains(operand->get());
      inputs.push_back(isShared ? copies.lookupOrDefault(operand->get()) : lookup(operand->get()));
      maps.push_back(mapOf(*operand, isShared || !isa<RankedTensorType>(operand->get().getType())));
    }
    SmallVector<Type> types;
    for (OpOperand &operand : op.getDpsInitsMutable()) {
      RankedTensorType type = allOf(typeOf(operand.get()), steps);
      Value init = tensor::EmptyOp::create(builder, op.getLoc(), type.getShape(), type.getElementType());
      if (auto fill = operand.get().getDefiningOp<linalg::FillOp>())
        init = linalg::FillOp::create(builder, op.getLoc(), fill.value(), init).getResult(0);
      inits.push_back(init);
      maps.push_back(mapOf(operand, false));
      types.push_back(type);
    }
    SmallVector<utils::IteratorType> iterators(op.getIteratorTypesArray());
    iterators.insert(iterators.begin(), utils::IteratorType::parallel);
    assert(iterators.size() == loops + 1 && "a loop for the layers");
    (void)loops;
    auto made = linalg::GenericOp::create(builder, op.getLoc(), types, inputs, inits, maps, iterators);
    IRMapping mapping;
    op->getRegion(0).cloneInto(&made.getRegion(), mapping);
    for (auto [old, result] : llvm::zip_equal(op->getResults(), made.getResults()))
      map(old, result);
  }

  OpBuilder &builder;
  int64_t layers;
  llvm::DenseMap<Value, Value> stacked;
  IRMapping copies; ///< of values that are the same for all layers
};

class Rewrite {
public:
  Rewrite(const LayerStack &given, const Target &target, bool strict)
      : stack(given), target(target), strict(strict), model(stack.layers[1]), last(stack.layers.back().loop),
        builder(last), loc(last.getLoc()), layers(stack.layers.size()), steps(stack.steps()), waves(stack.waves()) {}

  scf::ForOp run() {
    Value firstParts = padded(stack.layers.front().part.getSource());
    SmallVector<int64_t> firsts = llvm::to_vector(llvm::seq<int64_t>(layers));
    Value table = tableOfLayers(builder, loc, firsts, steps, waves);
    SmallVector<Value> initials;
    for (unsigned number : model.states())
      initials.push_back(sideBySide(builder, loc, initialsOf(number)));
    Stacked projection(builder, layers - 1), cell(builder, layers);
    readOutside(projection, stack.ofProjections);
    readOutside(cell, stack.ofCells);
    std::optional<StateProducts> products = findStateProducts(stack, strict);
    Value weights;
    if (products) {
      weights = weightsOf(*products);
    }
    RankedTensorType state = typeOf(initials[model.position(model.state)]);
    SmallVector<int64_t> collected{waves};
    llvm::append_range(collected, state.getShape());
    initials.push_back(tensor::EmptyOp::create(builder, loc, collected, state.getElementType()));
    auto index = [&](int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value).getResult(); };
    auto loop = scf::ForOp::create(builder, loc, index(0), index(waves), index(1), initials);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value step = loop.getInductionVar();
    for (auto [number, argument] : llvm::zip_first(model.states(), loop.getRegionIterArgs()))
      cell.map(model.loop.getRegionIterArg(number), argument);
    Value before = cell.lookup(model.loop.getRegionIterArg(model.state));
    if (products)
      multiply(*products, weights, before, cell, projection);
    Value parts = partsOf(projection, firstParts, step, before);
    cell.map(model.part, parts);
    for (Operation &op : model.loop.getBody()->without_terminator())
      if (&op != model.part && &op != model.collected && !isAccumulator(&op) && !(products && products->cell == &op)) {
        if (differs(cell, &op))
          cell.make(&op, 1);
        else
          cell.copy(&op);
      }
    yield(loop, cell, layersAtWork(builder, loc, table, step, layers), step);
    eraseUnused(*loop.getBody());
    replaceResults(loop);
    eraseLayers(stack);
    return loop;
  }

private:
  SmallVector<Value> initialsOf(unsigned number) {
    return llvm::map_to_vector(stack.layers,
                               [&](RecurrentLayer &layer) { return Value(layer.loop.getInitArgs()[number]); });
  }

  /// Returns the parts of the first layer with a part for every step of the new loop.
  Value padded(Value parts) {
    SmallVector<int64_t> shape(typeOf(parts).getShape());
    shape.front() = waves - steps;
    auto type = RankedTensorType::get(shape, typeOf(parts).getElementType());
    Value zeros = arith::ConstantOp::create(builder, loc, cast<TypedAttr>(builder.getZeroAttr(type)));
    return tensor::ConcatOp::create(builder, loc, /*dim=*/0, ValueRange{parts, zeros});
  }

  void readOutside(Stacked &ops, const llvm::MapVector<Value, SmallVector<Value>> &values) {
    for (const auto &[value, others] : values)
      if (!llvm::all_equal(others))
        ops.map(value, sideBySide(builder, loc, others));
  }

  /// Returns the weights by which the state of each layer is multiplied, [layer, k, group, column], with zeros behind
  /// the columns of the cell and the next projection. There is no layer behind the last.
  Value weightsOf(const StateProducts &products) {
    SmallVector<Value> next = stack.ofProjections.find(products.projection->getOperand(1))->second,
                       cells = stack.ofCells.find(products.cell->getOperand(1))->second;
    // Weights of 16 bits stay so. The product widens them.
    SmallVector<Value> weights = llvm::to_vector(llvm::concat<Value>(cells, next));
    narrowAll(builder, weights);
    cells.assign(weights.begin(), weights.begin() + layers);
    next.assign(weights.begin() + layers, weights.end());
    auto zerosLike = [&](RankedTensorType type) {
      return arith::ConstantOp::create(builder, loc, cast<TypedAttr>(builder.getZeroAttr(type))).getResult();
    };
    next.push_back(zerosLike(typeOf(next.front())));
    SmallVector<Value> parts{sideBySide(builder, loc, cells), sideBySide(builder, loc, next)};
    RankedTensorType own = typeOf(parts.front());
    int64_t columns = own.getDimSize(2) + typeOf(parts.back()).getDimSize(2);
    groups = groupColumns(columns, own.getDimSize(1) * tile::elementBytes(own.getElementType()), layers, target);
    if (int64_t behind = groups.count * groups.columns - columns)
      parts.push_back(zerosLike(RankedTensorType::get({layers, own.getDimSize(1), behind}, own.getElementType())));
    Value all = tensor::ConcatOp::create(builder, loc, /*dim=*/2, parts);
    auto type = RankedTensorType::get({layers, own.getDimSize(1), groups.count, groups.columns}, own.getElementType());
    return reshape(builder, loc, all, type);
  }

  void multiply(const StateProducts &products, Value weights, Value states, Stacked &cell, Stacked &projection) {
    Value own = products.cell->getResult(0), next = products.projection->getResult(0);
    int64_t rows = typeOf(states).getDimSize(1), ownColumns = typeOf(own).getDimSize(1),
            nextColumns = typeOf(next).getDimSize(1);
    auto type = RankedTensorType::get({layers, rows, groups.count, groups.columns}, typeOf(own).getElementType());
    Value product = stackedProduct(builder, loc, products.cell, type, states, weights);
    auto all = RankedTensorType::get({layers, rows, groups.count * groups.columns}, type.getElementType());
    Value columns = tensor::CollapseShapeOp::create(builder, loc, all, product,
                                                    SmallVector<ReassociationIndices>{{0}, {1}, {2, 3}});
    auto slice = [&](int64_t count, int64_t first, int64_t width) {
      SmallVector<OpFoldResult> offsets(3, builder.getIndexAttr(0)), ones(3, builder.getIndexAttr(1));
      offsets[2] = builder.getIndexAttr(first);
      SmallVector<OpFoldResult> sizes{builder.getIndexAttr(count), builder.getIndexAttr(rows),
                                      builder.getIndexAttr(width)};
      return tensor::ExtractSliceOp::create(builder, loc, columns, offsets, sizes, ones).getResult();
    };
    cell.map(own, slice(layers, 0, ownColumns));
    projection.map(next, slice(layers - 1, ownColumns, nextColumns));
  }

  /// Returns what all layers read in a step: the first layer its part, and the others the projected states of the step
  /// before of the layers before them.
  Value partsOf(Stacked &projection, Value firstParts, Value step, Value states) {
    RecurrentLayer &first = stack.layers.front();
    RankedTensorType part = typeOf(model.part), sequence = typeOf(model.collected.getDest());
    SmallVector<int64_t> one(sequence.getShape());
    one.front() = 1;
    auto before = withFirst(layers - 1, RankedTensorType::get(one, sequence.getElementType()));
    Value lower = rows(builder, loc, states, builder.getIndexAttr(0), layers - 1);
    projection.map(first.loop.getResult(first.sequence), reshape(builder, loc, lower, before));
    for (Operation *op : model.projection)
      if (!projection.lookup(op->getResult(0)))
        projection.make(op, steps);
    Value projected = reshape(builder, loc, projection.lookup(model.part.getSource()), withFirst(layers - 1, part));
    Value own = reshape(builder, loc, rows(builder, loc, firstParts, step, 1), withFirst(1, part));
    return tensor::ConcatOp::create(builder, loc, /*dim=*/0, ValueRange{own, projected});
  }

  /// Returns true for what starts accumulators only, which are made with their readers.
  static bool isAccumulator(Operation *op) {
    return isa<tensor::EmptyOp>(op) || (isa<linalg::FillOp>(op) && llvm::all_of(op->getUses(), [](OpOperand &use) {
                                          auto reader = dyn_cast<linalg::LinalgOp>(use.getOwner());
                                          return reader && reader.isDpsInit(&use);
                                        }));
  }

  /// Returns true if the result of an op differs between the layers.
  static bool differs(const Stacked &ops, Operation *op) {
    return llvm::any_of(op->getOperands(), [&](Value operand) { return ops.lookup(operand) != nullptr; });
  }

  void yield(scf::ForOp loop, Stacked &cell, Value row, Value step) {
    SmallVector<Value> results;
    for (auto [number, argument] : llvm::zip_first(model.states(), loop.getRegionIterArgs()))
      results.push_back(keepOthers(builder, loc, cell.lookup(model.loop.getYieldedValues()[number]), argument, row));
    Value sequence = loop.getRegionIterArgs().back(), state = results[model.position(model.state)];
    SmallVector<int64_t> one(typeOf(sequence).getShape());
    one.front() = 1;
    SmallVector<OpFoldResult> offsets(one.size(), builder.getIndexAttr(0)), sizes,
        strides(one.size(), builder.getIndexAttr(1));
    offsets.front() = step;
    for (int64_t size : one)
      sizes.push_back(builder.getIndexAttr(size));
    results.push_back(tensor::InsertSliceOp::create(builder, loc, state, sequence, offsets, sizes, strides));
    scf::YieldOp::create(builder, loc, results);
  }

  /// Returns the elements of a layer in steps from `first` on, of the tensor [step, layer, ...] or [layer, ...].
  Value part(Value whole, ArrayRef<int64_t> firsts, ArrayRef<int64_t> counts, RankedTensorType type) {
    SmallVector<OpFoldResult> offsets, sizes, strides(typeOf(whole).getRank(), builder.getIndexAttr(1));
    for (auto [dim, size] : llvm::enumerate(typeOf(whole).getShape())) {
      offsets.push_back(builder.getIndexAttr(dim < firsts.size() ? firsts[dim] : 0));
      sizes.push_back(builder.getIndexAttr(dim < counts.size() ? counts[dim] : size));
    }
    Value slice = tensor::ExtractSliceOp::create(builder, loc, whole, offsets, sizes, strides);
    return reshape(builder, loc, slice, type);
  }

  void replaceResults(scf::ForOp loop) {
    moveReadersBehind(stack);
    builder.setInsertionPointAfter(loop);
    Value all = loop.getResults().back();
    for (auto [layer, own] : llvm::enumerate(stack.layers)) {
      int64_t number = layer;
      auto isBehind = [&](OpOperand &use) { return isUsedBehind(stack, use); };
      for (OpResult result : own.loop.getResults()) {
        if (llvm::none_of(result.getUses(), isBehind))
          continue;
        unsigned of = result.getResultNumber();
        Value value;
        if (of == own.sequence)
          value = part(all, {number, number}, {steps, 1}, typeOf(result));
        else if (of == own.state)
          value = part(all, {number + steps - 1, number}, {1, 1}, typeOf(result));
        else
          value = part(loop.getResult(model.position(of)), {number}, {1}, typeOf(result));
        result.replaceUsesWithIf(value, isBehind);
      }
    }
  }

  LayerStack stack;
  const Target &target;
  bool strict; ///< true if all roundings of the graph stay
  ColumnGroups groups;
  RecurrentLayer model; ///< the second layer
  scf::ForOp last;
  OpBuilder builder;
  Location loc;
  int64_t layers, steps, waves;
};
} // namespace

scf::ForOp tilewright::stackLayers(const LayerStack &stack, const std::optional<JointProduct> &joint,
                                   const Target &target, NumericsMode numerics) {
  if (joint)
    return stackByJointProduct(stack, *joint);
  return Rewrite(stack, target, numerics == NumericsMode::strict).run();
}
