#include "passes/normalize/layers/StackedLoop.h"

#include "passes/normalize/layers/StackedTensors.h"
#include "passes/support/EraseUnused.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tilewright;

/// Elements of a row of the table that says which layers are at work, in multiples of which rows begin: what threads of
/// GPUs load at once.
static constexpr int64_t kRowAlignment = 4;

/// Returns true for a product of a matrix [m, k] with another one, [k, n].
static bool isMatrixProduct(linalg::LinalgOp op) {
  if (!linalg::isaContractionOpInterface(op) || op.getNumLoops() != 3)
    return false;
  AffineExpr m, n, k;
  bindDims(op.getContext(), m, n, k);
  auto maps = [&](ArrayRef<ArrayRef<AffineExpr>> indices) {
    return op.getIndexingMapsArray() == AffineMap::inferFromExprList(indices, op.getContext());
  };
  return maps({{m, k}, {k, n}, {m, n}});
}

/// Returns true if a product is added to anything but zeros.
static bool isStarted(linalg::LinalgOp op) {
  auto fill = op.getDpsInits().front().getDefiningOp<linalg::FillOp>();
  return !fill || !matchPattern(fill.value(), m_AnyZeroFloat());
}

std::optional<StateProducts> tilewright::findStateProducts(const LayerStack &stack, bool strict) {
  StateProducts found;
  RecurrentLayer model = stack.layers[1], first = stack.layers.front();
  Value state = model.loop.getRegionIterArg(model.state), sequence = first.loop.getResult(model.sequence);
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

void tilewright::narrowAll(OpBuilder &builder, MutableArrayRef<Value> tensors) {
  SmallVector<Value> narrow =
      llvm::map_to_vector(tensors, [&](Value tensor) { return withoutWidening(builder, tensor); });
  if (llvm::all_equal(llvm::map_range(narrow, [](Value tensor) { return typeOf(tensor).getElementType(); })))
    llvm::copy(narrow, tensors.begin());
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

Value tilewright::stackedProduct(OpBuilder &builder, Location loc, linalg::LinalgOp ofLayer, RankedTensorType type,
                                 Value read, Value weights) {
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  Value zero = ofLayer.getDpsInits().front().getDefiningOp<linalg::FillOp>().value();
  Value zeros = linalg::FillOp::create(builder, loc, zero, empty).getResult(0);
  AffineExpr l, m, g, n, k;
  bindDims(builder.getContext(), l, m, g, n, k);
  auto maps = AffineMap::inferFromExprList(ArrayRef<ArrayRef<AffineExpr>>{{l, m, k}, {l, k, g, n}, {l, m, g, n}},
                                           builder.getContext());
  SmallVector<utils::IteratorType> iterators(4, utils::IteratorType::parallel);
  iterators.push_back(utils::IteratorType::reduction);
  auto product = linalg::GenericOp::create(builder, loc, TypeRange{type}, ValueRange{read, weights}, ValueRange{zeros},
                                           maps, iterators);
  IRMapping mapping;
  ofLayer->getRegion(0).cloneInto(&product.getRegion(), mapping);
  widenWeights(product, typeOf(weights).getElementType());
  return product.getResult(0);
}

Value tilewright::tableOfLayers(OpBuilder &builder, Location loc, ArrayRef<int64_t> firsts, int64_t steps,
                                int64_t waves) {
  int64_t row = llvm::alignTo(firsts.size(), kRowAlignment);
  SmallVector<float> numbers(waves * row, 0);
  for (auto [layer, first] : llvm::enumerate(firsts))
    for (int64_t step = first; step < first + steps; ++step)
      numbers[step * row + layer] = 1;
  auto type = RankedTensorType::get({waves, row}, builder.getF32Type());
  return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, llvm::ArrayRef(numbers)));
}

Value tilewright::layersAtWork(OpBuilder &builder, Location loc, Value table, Value step, int64_t layers) {
  auto type = RankedTensorType::get({layers}, builder.getF32Type());
  SmallVector<OpFoldResult> offsets{step, builder.getIndexAttr(0)},
      sizes{builder.getIndexAttr(1), builder.getIndexAttr(layers)}, ones(2, builder.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(builder, loc, type, table, offsets, sizes, ones);
}

Value tilewright::keepOthers(OpBuilder &builder, Location loc, Value next, Value before, Value atWork) {
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
  return linalg::GenericOp::create(builder, loc, TypeRange{type}, ValueRange{next, before, atWork}, ValueRange{empty},
                                   ArrayRef<AffineMap>{all, all, layer, all}, iterators, body)
      .getResult(0);
}

void tilewright::moveReadersBehind(const LayerStack &stack) {
  for (Operation *reader : llvm::reverse(stack.readers))
    reader->moveAfter(stack.layers.back().loop);
}

bool tilewright::isUsedBehind(const LayerStack &stack, OpOperand &use) {
  Operation *last = stack.layers.back().loop;
  return last->isBeforeInBlock(last->getBlock()->findAncestorOpInBlock(*use.getOwner()));
}

void tilewright::eraseLayers(LayerStack &stack) {
  Block &block = *stack.layers.back().loop->getBlock();
  for (RecurrentLayer &layer : llvm::reverse(stack.layers)) {
    layer.loop->erase();
    for (Operation *op : llvm::reverse(layer.projection))
      op->erase();
  }
  eraseUnused(block); // what projections started from, and what weights were before they were widened
}
