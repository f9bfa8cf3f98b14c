// The ops of the second layer are made again with a first dim for the layers; what the layers read in its place from
// outside is put side by side. The projection reads the states of all layers but the last in the step before. If it and
// the cell begin with matrix products, they are one: the state of a layer is multiplied by its own weights and by those
// of the next layer's projection (Souffle 6.1), so that a block can have columns of one layer. In the steps in which a
// layer has not begun, or has ended, it keeps its states.
#include "passes/plan/apply/StackLayers.h"

#include "passes/plan/apply/StackedTensors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// Elements of a row of the table that says which layers are at work, in multiples of which rows begin: what threads of
/// GPUs load at once.
constexpr int64_t kRowAlignment = 4;

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

/// The product of the state with the weights of the cell, and the one of the sequence with those of the projection.
struct Products {
  linalg::LinalgOp cell, projection;
};

/// Returns true for a product of a matrix [m, k] with another one, [k, n].
bool isMatrixProduct(linalg::LinalgOp op) {
  if (!linalg::isaContractionOpInterface(op) || op.getNumLoops() != 3)
    return false;
  AffineExpr m, n, k;
  bindDims(op.getContext(), m, n, k);
  auto maps = [&](ArrayRef<ArrayRef<AffineExpr>> indices) {
    return op.getIndexingMapsArray() == AffineMap::inferFromExprList(indices, op.getContext());
  };
  return maps({{m, k}, {k, n}, {m, n}});
}

class Rewrite {
public:
  Rewrite(const LayerStack &given, const Target &target, bool strict)
      : stack(given), target(target), strict(strict), model(stack.layers[1]), last(stack.layers.back().loop),
        builder(last), loc(last.getLoc()), layers(stack.layers.size()), steps(stack.steps()), waves(stack.waves()) {}

  scf::ForOp run() {
    Value firstParts = padded(stack.layers.front().part.getSource());
    Value table = tableOfLayers();
    SmallVector<Value> initials;
    for (unsigned number : states())
      initials.push_back(sideBySide(builder, loc, initialsOf(number)));
    Stacked projection(builder, layers - 1), cell(builder, layers);
    readOutside(projection, stack.ofProjections);
    readOutside(cell, stack.ofCells);
    std::optional<Products> products = findProducts();
    Value weights;
    if (products) {
      weights = weightsOf(*products);
    }
    RankedTensorType state = typeOf(initials[position(model.state)]);
    SmallVector<int64_t> collected{waves};
    llvm::append_range(collected, state.getShape());
    initials.push_back(tensor::EmptyOp::create(builder, loc, collected, state.getElementType()));
    auto index = [&](int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value).getResult(); };
    auto loop = scf::ForOp::create(builder, loc, index(0), index(waves), index(1), initials);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value step = loop.getInductionVar();
    for (auto [number, argument] : llvm::zip_first(states(), loop.getRegionIterArgs()))
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
    yield(loop, cell, rowOf(table, step), step);
    eraseUnused(*loop.getBody());
    replaceResults(loop);
    eraseLayers();
    return loop;
  }

private:
  /// Returns the numbers of the states, which come before the sequence in the new loop.
  SmallVector<unsigned> states() {
    SmallVector<unsigned> numbers;
    for (unsigned number = 0; number < model.loop.getNumResults(); ++number)
      if (number != model.sequence)
        numbers.push_back(number);
    return numbers;
  }

  unsigned position(unsigned state) const { return state - (state > model.sequence); }

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

  /// Returns a table of ones for the layers that are at work in a step, and zeros.
  Value tableOfLayers() {
    int64_t row = llvm::alignTo(layers, kRowAlignment);
    SmallVector<float> numbers(waves * row, 0);
    for (int64_t layer = 0; layer < layers; ++layer)
      for (int64_t step = layer; step < layer + steps; ++step)
        numbers[step * row + layer] = 1;
    auto type = RankedTensorType::get({waves, row}, builder.getF32Type());
    return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, llvm::ArrayRef(numbers)));
  }

  Value rowOf(Value table, Value step) {
    auto type = RankedTensorType::get({layers}, builder.getF32Type());
    SmallVector<OpFoldResult> offsets{step, builder.getIndexAttr(0)},
        sizes{builder.getIndexAttr(1), builder.getIndexAttr(layers)}, ones(2, builder.getIndexAttr(1));
    return tensor::ExtractSliceOp::create(builder, loc, type, table, offsets, sizes, ones);
  }

  void readOutside(Stacked &ops, const llvm::MapVector<Value, SmallVector<Value>> &values) {
    for (const auto &[value, others] : values)
      if (!llvm::all_equal(others))
        ops.map(value, sideBySide(builder, loc, others));
  }

  /// Finds the products of states that can be one, whose weights come from outside.
  std::optional<Products> findProducts() {
    Products found;
    Value state = model.loop.getRegionIterArg(model.state),
          sequence = stack.layers.front().loop.getResult(model.sequence);
    auto isWeighted = [](linalg::LinalgOp op, const llvm::MapVector<Value, SmallVector<Value>> &outside) {
      return outside.contains(op->getOperand(1));
    };
    for (auto op : model.loop.getBody()->getOps<linalg::LinalgOp>())
      if (!found.cell && isMatrixProduct(op) && op->getOperand(0) == state && isWeighted(op, stack.ofCells))
        found.cell = op;
    for (Operation *each : model.projection)
      if (auto op = dyn_cast<linalg::LinalgOp>(each);
          op && !found.projection && isMatrixProduct(op) &&
          beforeReshapes(op->getOperand(0), /*alsoRoundings=*/!strict) == sequence &&
          isWeighted(op, stack.ofProjections))
        found.projection = op;
    if (!found.cell || !found.projection || isStarted(found.cell) || isStarted(found.projection))
      return std::nullopt;
    RankedTensorType own = typeOf(found.cell->getOperand(1)), next = typeOf(found.projection->getOperand(1));
    bool areAlike =
        own.getDimSize(0) == next.getDimSize(0) && own.getElementType() == next.getElementType() &&
        typeOf(found.cell->getResult(0)).getElementType() == typeOf(found.projection->getResult(0)).getElementType();
    return areAlike ? std::optional(found) : std::nullopt;
  }

  /// Returns true if a product is added to anything but zeros.
  static bool isStarted(linalg::LinalgOp op) {
    auto fill = op.getDpsInits().front().getDefiningOp<linalg::FillOp>();
    return !fill || !matchPattern(fill.value(), m_AnyZeroFloat());
  }

  /// Returns the weights by which the state of each layer is multiplied, [layer, k, group, column], with zeros behind
  /// the columns of the cell and the next projection. There is no layer behind the last.
  Value weightsOf(const Products &products) {
    SmallVector<Value> next = stack.ofProjections.find(products.projection->getOperand(1))->second,
                       cells = stack.ofCells.find(products.cell->getOperand(1))->second;
    // Weights of 16 bits stay so. The product widens them.
    SmallVector<Value> narrow = llvm::map_to_vector(llvm::concat<Value>(cells, next),
                                                    [&](Value tensor) { return withoutWidening(builder, tensor); });
    if (llvm::all_of(narrow, [&](Value tensor) {
          return typeOf(tensor).getElementType() == typeOf(narrow.front()).getElementType();
        })) {
      cells.assign(narrow.begin(), narrow.begin() + layers);
      next.assign(narrow.begin() + layers, narrow.end());
    }
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

  /// Has a product whose weights have become narrower widen them.
  static void widenWeights(linalg::GenericOp product, Type narrow) {
    BlockArgument weight = product.getBody()->getArgument(1);
    Type wide = weight.getType();
    if (wide == narrow)
      return;
    weight.setType(narrow);
    OpBuilder inside = OpBuilder::atBlockBegin(product.getBody());
    auto widened = arith::ExtFOp::create(inside, product.getLoc(), wide, weight);
    weight.replaceAllUsesExcept(widened, widened);
  }

  void multiply(const Products &products, Value weights, Value states, Stacked &cell, Stacked &projection) {
    Value own = products.cell->getResult(0), next = products.projection->getResult(0);
    int64_t rows = typeOf(states).getDimSize(1), ownColumns = typeOf(own).getDimSize(1),
            nextColumns = typeOf(next).getDimSize(1);
    auto type = RankedTensorType::get({layers, rows, groups.count, groups.columns}, typeOf(own).getElementType());
    Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
    Value zero = cast<linalg::FillOp>(linalg::LinalgOp(products.cell).getDpsInits().front().getDefiningOp()).value();
    Value zeros = linalg::FillOp::create(builder, loc, zero, empty).getResult(0);
    AffineExpr l, m, g, n, k;
    bindDims(builder.getContext(), l, m, g, n, k);
    auto maps = AffineMap::inferFromExprList(ArrayRef<ArrayRef<AffineExpr>>{{l, m, k}, {l, k, g, n}, {l, m, g, n}},
                                             builder.getContext());
    SmallVector<utils::IteratorType> iterators(4, utils::IteratorType::parallel);
    iterators.push_back(utils::IteratorType::reduction);
    auto product = linalg::GenericOp::create(builder, loc, TypeRange{type}, ValueRange{states, weights},
                                             ValueRange{zeros}, maps, iterators);
    IRMapping mapping;
    products.cell->getRegion(0).cloneInto(&product.getRegion(), mapping);
    widenWeights(product, typeOf(weights).getElementType());
    auto all = RankedTensorType::get({layers, rows, groups.count * groups.columns}, type.getElementType());
    Value columns = tensor::CollapseShapeOp::create(builder, loc, all, product.getResult(0),
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

  /// Returns `next` for the layers that are at work, and the state before for the others.
  Value keepOthers(Value next, Value before, Value row) {
    RankedTensorType type = typeOf(next);
    unsigned rank = type.getRank();
    AffineMap all = builder.getMultiDimIdentityMap(rank), layer = AffineMap::get(rank, 0, builder.getAffineDimExpr(0));
    Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
    SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
    auto body = [](OpBuilder &b, Location at, ValueRange values) {
      Value zero = arith::ConstantOp::create(b, at, b.getF32FloatAttr(0));
      Value works = arith::CmpFOp::create(b, at, arith::CmpFPredicate::OGT, values[2], zero);
      Value chosen = arith::SelectOp::create(b, at, works, values[0], values[1]);
      linalg::YieldOp::create(b, at, chosen);
    };
    return linalg::GenericOp::create(builder, loc, TypeRange{type}, ValueRange{next, before, row}, ValueRange{empty},
                                     ArrayRef<AffineMap>{all, all, layer, all}, iterators, body)
        .getResult(0);
  }

  void yield(scf::ForOp loop, Stacked &cell, Value row, Value step) {
    SmallVector<Value> results;
    for (auto [number, argument] : llvm::zip_first(states(), loop.getRegionIterArgs()))
      results.push_back(keepOthers(cell.lookup(model.loop.getYieldedValues()[number]), argument, row));
    Value sequence = loop.getRegionIterArgs().back(), state = results[position(model.state)];
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
    for (Operation *reader : llvm::reverse(stack.readers))
      reader->moveAfter(last);
    builder.setInsertionPointAfter(loop);
    Value all = loop.getResults().back();
    for (auto [layer, own] : llvm::enumerate(stack.layers)) {
      int64_t number = layer;
      auto isBehind = [&](OpOperand &use) {
        Operation *reader = last->getBlock()->findAncestorOpInBlock(*use.getOwner());
        return last->isBeforeInBlock(reader);
      };
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
          value = part(loop.getResult(position(of)), {number}, {1}, typeOf(result));
        result.replaceUsesWithIf(value, isBehind);
      }
    }
  }

  void eraseLayers() {
    Block &block = *last->getBlock();
    for (RecurrentLayer &layer : llvm::reverse(stack.layers)) {
      layer.loop->erase();
      for (Operation *op : llvm::reverse(layer.projection))
        op->erase();
    }
    eraseUnused(block); // what projections started from, and what weights were before they were widened
  }

  static void eraseUnused(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        op.erase();
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

scf::ForOp tilewright::stackLayers(const LayerStack &stack, const Target &target, NumericsMode numerics) {
  return Rewrite(stack, target, numerics == NumericsMode::strict).run();
}
