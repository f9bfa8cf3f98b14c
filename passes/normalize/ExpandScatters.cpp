// IREE's scatter is a kernel of its own, which its compiler gets wrong where indices or updates are constants. The op
// belongs to IREE and is unregistered here, so it is recognised by its name, operands and region.
#include "passes/normalize/ExpandScatters.h"

#include "passes/normalize/GenericBuilder.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace tilewright;

namespace {
constexpr llvm::StringLiteral kScatter = "iree_linalg_ext.scatter", kImport = "hal.tensor.import";

/// Updates of slices of a tensor, whose first dims the indices give.
struct Scatter {
  Value updates, indices, original;
  int64_t batchDims, indexedDims;
  Operation *combiner; ///< op on an update and an element, or null if the update replaces the element
};

/// Returns true and the op that combines an update (the first argument) with an element, or null for the update itself.
bool matchCombiner(Region &region, Operation *&combiner) {
  if (!region.hasOneBlock() || region.getNumArguments() != 2)
    return false;
  Block &block = region.front();
  Operation *yield = &block.back();
  if (yield->getNumOperands() != 1)
    return false;
  combiner = nullptr;
  if (llvm::hasSingleElement(block))
    return yield->getOperand(0) == block.getArgument(0);
  combiner = &block.front();
  return llvm::hasNItems(block, 2) && yield->getOperands() == combiner->getResults() &&
         combiner->getNumOperands() == 2 && llvm::is_contained(combiner->getOperands(), block.getArgument(0)) &&
         llvm::is_contained(combiner->getOperands(), block.getArgument(1)) &&
         isa<arith::AddFOp, arith::AddIOp, arith::MulFOp, arith::MulIOp, arith::MaximumFOp, arith::MinimumFOp,
             arith::MaxSIOp, arith::MaxUIOp, arith::MinSIOp, arith::MinUIOp, arith::OrIOp, arith::AndIOp>(combiner) &&
         arith::getNeutralElement(combiner);
}

/// Returns true for an argument of the program, also behind reshapes.
bool isArgument(Value value) {
  Operation *op = value.getDefiningOp();
  while (isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp>(op)) {
    value = op->getOperand(0);
    op = value.getDefiningOp();
  }
  return !op || op->getName().getStringRef() == kImport;
}

/// Returns true if the value depends on nothing but constants.
bool isMadeOfConstants(Value value) {
  SmallVector<Value> open{value};
  llvm::SmallPtrSet<Operation *, 8> seen;
  while (!open.empty()) {
    Operation *op = open.pop_back_val().getDefiningOp();
    if (!op)
      return false;
    if (!seen.insert(op).second)
      continue;
    llvm::append_range(open, op->getOperands());
    SetVector<Value> captured;
    getUsedValuesDefinedAbove(op->getRegions(), captured);
    llvm::append_range(open, captured);
  }
  return true;
}

std::optional<Scatter> match(Operation *op) {
  if (op->getName().getStringRef() != kScatter || op->getNumOperands() != 3 || op->getNumResults() != 1 ||
      op->getNumRegions() != 1)
    return std::nullopt;
  auto properties = dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
  auto map = properties ? properties.getAs<DenseI64ArrayAttr>("dimension_map") : DenseI64ArrayAttr();
  SmallVector<RankedTensorType> types;
  for (Value operand : op->getOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    if (!type || !type.hasStaticShape() || type.getNumElements() == 0)
      return std::nullopt;
    types.push_back(type);
  }
  RankedTensorType updates = types[0], indices = types[1], original = types[2];
  Scatter scatter{op->getOperand(0), op->getOperand(1), op->getOperand(2), 0, 0, nullptr};
  if (!map || op->getResult(0).getType() != original || !matchCombiner(op->getRegion(0), scatter.combiner))
    return std::nullopt;
  for (auto [number, dim] : llvm::enumerate(map.asArrayRef()))
    if (dim != int64_t(number))
      return std::nullopt;
  scatter.indexedDims = map.size();
  scatter.batchDims = updates.getRank() - (original.getRank() - scatter.indexedDims);
  bool hasDepth = indices.getRank() == scatter.batchDims + 1 && indices.getShape().back() == scatter.indexedDims;
  bool isFlat = indices.getRank() == scatter.batchDims && scatter.indexedDims == 1;
  if (scatter.batchDims < 1 || !(hasDepth || isFlat) ||
      updates.getShape().take_front(scatter.batchDims) != indices.getShape().take_front(scatter.batchDims) ||
      updates.getShape().drop_front(scatter.batchDims) != original.getShape().drop_front(scatter.indexedDims))
    return std::nullopt;
  return scatter;
}

int64_t product(ArrayRef<int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>());
}

bool mayExpand(const Scatter &scatter, const CommonCosts &costs) {
  auto original = cast<RankedTensorType>(scatter.original.getType());
  int64_t updates =
      product(cast<RankedTensorType>(scatter.updates.getType()).getShape().take_front(scatter.batchDims));
  // Elements of one slice are hit by the same updates.
  ArrayRef<int64_t> compared =
      scatter.combiner ? original.getShape() : original.getShape().take_front(scatter.indexedDims);
  if (updates > costs.fewUpdates && product(compared) > costs.comparedPairs / updates)
    return false;
  bool isState = !scatter.combiner && isArgument(scatter.original);
  return !isState || (isMadeOfConstants(scatter.indices) && isMadeOfConstants(scatter.updates));
}

class Expander : GenericBuilder {
public:
  Expander(Operation *op, Scatter scatter)
      : GenericBuilder(op), op(op), scatter(scatter), type(cast<RankedTensorType>(op->getResult(0).getType())) {}

  void expand() {
    Value updates = withOneBatchDim(scatter.updates), indices = withOneBatchDim(scatter.indices);
    if (cast<RankedTensorType>(indices.getType()).getRank() == 1)
      indices = withDepth(indices);
    Value result = cast<RankedTensorType>(updates.getType()).getDimSize(0) == 1 ? changed(updates, indices)
                   : scatter.combiner                                           ? combined(updates, indices)
                                                                                : replaced(updates, indices);
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
  }

private:
  Value withOneBatchDim(Value tensor) {
    int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
    if (scatter.batchDims == 1)
      return tensor;
    SmallVector<ReassociationIndices> groups(1);
    for (int64_t dim = 0; dim < rank; ++dim) {
      if (dim >= scatter.batchDims)
        groups.emplace_back();
      groups.back().push_back(dim);
    }
    return tensor::CollapseShapeOp::create(builder, loc, tensor, groups);
  }

  Value withDepth(Value indices) {
    auto flat = cast<RankedTensorType>(indices.getType());
    auto deep = RankedTensorType::get({flat.getDimSize(0), 1}, flat.getElementType());
    return tensor::ExpandShapeOp::create(builder, loc, deep, indices, {{0, 1}});
  }

  /// The maps of one operand for each indexed dim. `update` is the number of the update, in a domain of `loops` loops.
  SmallVector<AffineMap> indexMaps(int64_t loops, AffineExpr update) {
    SmallVector<AffineMap> maps;
    for (int64_t dim = 0; dim < scatter.indexedDims; ++dim)
      maps.push_back(AffineMap::get(loops, 0, {update, builder.getAffineConstantExpr(dim)}, builder.getContext()));
    return maps;
  }

  /// The map of the updates' elements at the place of a result's element.
  AffineMap updateMap(int64_t loops, AffineExpr update) {
    SmallVector<AffineExpr> read{update};
    for (int64_t dim = scatter.indexedDims; dim < type.getRank(); ++dim)
      read.push_back(builder.getAffineDimExpr(dim));
    return AffineMap::get(loops, 0, read, builder.getContext());
  }

  /// Returns true where the indices of an update are those of the loops.
  Value isHit(OpBuilder &at, ValueRange indices) {
    Value hit;
    for (int64_t dim = 0; dim < scatter.indexedDims; ++dim) {
      Value own = linalg::IndexOp::create(at, loc, dim);
      Value here = arith::IndexCastOp::create(at, loc, indices[dim].getType(), own);
      Value same = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::eq, indices[dim], here);
      hit = hit ? arith::AndIOp::create(at, loc, hit, same).getResult() : same;
    }
    return hit;
  }

  Value combine(OpBuilder &at, Value update, Value element) {
    if (!scatter.combiner)
      return update;
    IRMapping operands;
    operands.map(scatter.combiner->getOperands(), ValueRange{update, element});
    return at.clone(*scatter.combiner, operands)->getResult(0);
  }

  /// Lets a single update change the elements that it hits, without a loop.
  Value changed(Value update, Value indices) {
    int64_t rank = type.getRank();
    AffineExpr first = builder.getAffineConstantExpr(0);
    SmallVector<AffineMap> maps = indexMaps(rank, first);
    maps.push_back(updateMap(rank, first));
    maps.push_back(builder.getMultiDimIdentityMap(rank));
    SmallVector<Value> inputs(scatter.indexedDims, indices);
    inputs.append({update, scatter.original});
    return elementwise(type, inputs, maps, [&](OpBuilder &at, ValueRange elements) -> Value {
      Value own = elements.back(), changed = combine(at, elements.drop_back().back(), own);
      return arith::SelectOp::create(at, loc, isHit(at, elements), changed, own);
    });
  }

  /// Finds the last update that hits each slice, and takes its elements.
  Value replaced(Value updates, Value indices) {
    int64_t indexed = scatter.indexedDims;
    auto slices = RankedTensorType::get(type.getShape().take_front(indexed), builder.getI32Type());
    auto later = [&](OpBuilder &at, Value a, Value b) -> Value { return arith::MaxSIOp::create(at, loc, a, b); };
    SmallVector<Value> inputs(indexed, indices);
    Value last = reduce(slices, inputs, indexMaps(indexed + 1, builder.getAffineDimExpr(indexed)),
                        builder.getI32IntegerAttr(-1), later, [&](OpBuilder &at, ValueRange elements) -> Value {
                          return arith::SelectOp::create(at, loc, isHit(at, elements), index(at, indexed),
                                                         number(at, at.getI32Type(), -1));
                        });
    AffineMap all = builder.getMultiDimIdentityMap(type.getRank());
    AffineMap slice = all.getMajorSubMap(indexed);
    return elementwise(type, {last, scatter.original}, {slice, all}, [&](OpBuilder &at, ValueRange elements) -> Value {
      Value zero = number(at, at.getI32Type(), 0);
      Value hit = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::sge, elements[0], zero);
      Value update = arith::MaxSIOp::create(at, loc, elements[0], zero);
      SmallVector<Value> where{arith::IndexCastOp::create(at, loc, at.getIndexType(), update)};
      for (int64_t dim = indexed; dim < type.getRank(); ++dim)
        where.push_back(linalg::IndexOp::create(at, loc, dim));
      Value taken = tensor::ExtractOp::create(at, loc, updates, where);
      return arith::SelectOp::create(at, loc, hit, taken, elements[1]);
    });
  }

  /// Combines each element with all updates that hit it.
  Value combined(Value updates, Value indices) {
    int64_t rank = type.getRank();
    AffineExpr update = builder.getAffineDimExpr(rank);
    TypedAttr neutral = *arith::getNeutralElement(scatter.combiner);
    if (isa<arith::AddFOp>(scatter.combiner)) // an element of -0 without updates stays as it is
      neutral = builder.getFloatAttr(type.getElementType(), -0.0);
    auto combiner = [&](OpBuilder &at, Value total, Value more) { return combine(at, more, total); };
    SmallVector<AffineMap> maps = indexMaps(rank + 1, update);
    maps.push_back(updateMap(rank + 1, update));
    SmallVector<Value> inputs(scatter.indexedDims, indices);
    inputs.push_back(updates);
    Value total = reduce(type, inputs, maps, neutral, combiner, [&](OpBuilder &at, ValueRange elements) -> Value {
      Value nothing = arith::ConstantOp::create(at, loc, neutral);
      return arith::SelectOp::create(at, loc, isHit(at, elements), elements.back(), nothing);
    });
    return elementwise(type, {total, scatter.original}, [&](OpBuilder &at, ValueRange elements) {
      return combine(at, elements[0], elements[1]);
    });
  }

  Operation *op;
  Scatter scatter;
  RankedTensorType type;
};
} // namespace

void tilewright::expandScatters(func::FuncOp function, const CommonCosts &costs) {
  SmallVector<Operation *> scatters;
  function->walk([&](Operation *op) {
    if (std::optional<Scatter> scatter = match(op); scatter && mayExpand(*scatter, costs))
      scatters.push_back(op);
  });
  for (Operation *op : scatters) // an op may read the result of one before it
    Expander(op, *match(op)).expand();
}
