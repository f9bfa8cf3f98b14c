// Visits the ops in their order, and knows for each tensor that lies in another layout than the model's where its
// elements are. An op that reads such a tensor reads them there; if its own readers can do the same, its loops and its
// result take the order of that tensor as well. (MLIR's own patterns,
// linalg::populateDataLayoutPropagationPatterns, move linalg.pack, and refuse windows and reductions.)
#include "passes/normalize/KeepLayout.h"

#include "passes/support/EraseUnused.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// Where the elements of a tensor are: dim i of the tensor is dim `dims[i]` of `source`.
struct Elsewhere {
  Value source;
  SmallVector<int64_t> dims;
};

SmallVector<int64_t> inverse(ArrayRef<int64_t> dims) {
  SmallVector<int64_t> result(dims.size());
  for (auto [position, dim] : llvm::enumerate(dims))
    result[dim] = position;
  return result;
}

bool isIdentity(ArrayRef<int64_t> dims) { return llvm::equal(dims, llvm::seq<int64_t>(0, dims.size())); }

/// Returns the values, one for each dim of a tensor, in the order of the source's dims.
template <typename T>
SmallVector<T> inSource(ArrayRef<T> values, ArrayRef<int64_t> dims) {
  SmallVector<T> moved(values);
  for (auto [dim, value] : llvm::zip_equal(dims, values))
    moved[dim] = value;
  return moved;
}

RankedTensorType inSource(RankedTensorType type, ArrayRef<int64_t> dims) {
  return type.clone(inSource(type.getShape(), dims));
}

/// A reshape of a tensor that lies in another layout.
struct Reshaped {
  SmallVector<int64_t> shape;               ///< of the reshaped source
  SmallVector<ReassociationIndices> groups; ///< dims of the longer shape that are one dim of the shorter one
  SmallVector<int64_t> dims;                ///< the layout of the result: where each of its dims is in `shape`
};

/// Returns the reshape of the source of a tensor with the layout `dims` that expands the tensor.
Reshaped reshapedIn(tensor::ExpandShapeOp op, ArrayRef<int64_t> dims) {
  Reshaped found{{}, {}, SmallVector<int64_t>(op.getResultType().getRank())};
  for (ArrayRef<int64_t> group : inSource<ReassociationIndices>(op.getReassociationIndices(), dims)) {
    ReassociationIndices &own = found.groups.emplace_back();
    for (int64_t dim : group) {
      own.push_back(found.shape.size());
      found.dims[dim] = found.shape.size();
      found.shape.push_back(op.getResultType().getDimSize(dim));
    }
  }
  return found;
}

/// Returns the reshape of the source of a tensor with the layout `dims` that collapses the tensor, if the dims that
/// become one follow each other in the source.
std::optional<Reshaped> reshapedIn(tensor::CollapseShapeOp op, ArrayRef<int64_t> dims) {
  SmallVector<ReassociationIndices> groups = op.getReassociationIndices();
  for (const ReassociationIndices &group : groups)
    for (auto [dim, next] : llvm::zip(group, llvm::drop_begin(group)))
      if (dims[next] != dims[dim] + 1)
        return std::nullopt;
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, groups.size()));
  llvm::sort(order, [&](int64_t a, int64_t b) { return dims[groups[a].front()] < dims[groups[b].front()]; });
  Reshaped found{{}, {}, inverse(order)};
  for (int64_t group : order) {
    found.shape.push_back(op.getResultType().getDimSize(group));
    found.groups.push_back(llvm::map_to_vector<2>(groups[group], [&](int64_t dim) { return dims[dim]; }));
  }
  return found;
}

int64_t elementsOf(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getNumElements(); }

class LayoutKeeper {
public:
  explicit LayoutKeeper(ArrayRef<Value> results) { kept.insert_range(results); }

  void visit(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (!llvm::all_of(llvm::concat<Type>(SmallVector<Type>(op.getOperandTypes()),
                                           SmallVector<Type>(op.getResultTypes())),
                        [](Type type) { return !isa<ShapedType>(type) || cast<ShapedType>(type).hasStaticShape(); }))
        continue;
      if (auto generic = dyn_cast<linalg::GenericOp>(op))
        follow(generic);
      else if (auto pad = dyn_cast<tensor::PadOp>(op))
        follow(pad);
      else if (auto concat = dyn_cast<tensor::ConcatOp>(op))
        follow(concat);
      else if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
        follow(insert);
      else if (auto extract = dyn_cast<tensor::ExtractSliceOp>(op))
        follow(extract);
      else if (auto transpose = dyn_cast<linalg::TransposeOp>(op))
        follow(transpose);
      else if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
        followReshape(expand);
      else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
        followReshape(collapse);
    }
    eraseUnused(block); // transposes that nobody needs
  }

private:
  const Elsewhere *elsewhere(Value tensor) const {
    auto found = moved.find(tensor);
    return found == moved.end() ? nullptr : &found->second;
  }

  /// Returns the tensor in the layout `dims` of a source.
  Value laidOut(OpBuilder &builder, Value tensor, ArrayRef<int64_t> dims) {
    if (const Elsewhere *where = elsewhere(tensor); where && llvm::equal(where->dims, dims))
      return where->source;
    RankedTensorType type = inSource(cast<RankedTensorType>(tensor.getType()), dims);
    if (auto fill = tensor.getDefiningOp<linalg::FillOp>()) {
      Value empty = emptyOf(builder, tensor.getLoc(), type);
      return linalg::FillOp::create(builder, tensor.getLoc(), fill.getInputs()[0], empty).getResult(0);
    }
    Value empty = emptyOf(builder, tensor.getLoc(), type);
    return linalg::TransposeOp::create(builder, tensor.getLoc(), tensor, empty, inverse(dims))->getResult(0);
  }

  static Value emptyOf(OpBuilder &builder, Location loc, RankedTensorType type) {
    return tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  }

  /// Replaces a result by one in another layout, transposed for readers that need the layout of the model.
  void replace(OpBuilder &builder, Value result, Value by, ArrayRef<int64_t> dims) {
    kept.insert(by);
    if (isIdentity(dims)) {
      result.replaceAllUsesWith(by);
      return;
    }
    Value empty = emptyOf(builder, result.getLoc(), cast<RankedTensorType>(result.getType()));
    Value back = linalg::TransposeOp::create(builder, result.getLoc(), by, empty, dims)->getResult(0);
    moved[back] = {by, SmallVector<int64_t>(dims)};
    result.replaceAllUsesWith(back);
  }

  // --- elementwise ops, windows and reductions -----------------------------------------------------------------------

  static bool isContraction(linalg::GenericOp op) { return op.getNumDpsInputs() > 1 && op.getNumReductionLoops() > 0; }

  /// Returns true if an op gains from an operand in the layout `dims`, because it reads any, or all that reads it does.
  static bool readsLayout(Operation *op, ArrayRef<int64_t> dims) {
    auto isRead = [](Value value, const Reshaped &reshaped) {
      return llvm::any_of(value.getUsers(), [&](Operation *user) { return readsLayout(user, reshaped.dims); });
    };
    if (auto generic = dyn_cast<linalg::GenericOp>(op))
      return !isContraction(generic);
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
      return isRead(expand, reshapedIn(expand, dims));
    if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
      std::optional<Reshaped> reshaped = reshapedIn(collapse, dims);
      return reshaped && isRead(collapse, *reshaped);
    }
    return isa<tensor::PadOp, tensor::ConcatOp, tensor::InsertSliceOp, tensor::ExtractSliceOp>(op);
  }

  void follow(linalg::GenericOp op) {
    if (!op.hasPureTensorSemantics())
      return;
    OpOperand *lead = nullptr;
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    for (OpOperand *input : op.getDpsInputOperands()) {
      if (const Elsewhere *where = elsewhere(input->get())) {
        AffineMap &map = maps[input->getOperandNumber()];
        SmallVector<AffineExpr> indices = inSource(map.getResults(), where->dims);
        map = AffineMap::get(map.getNumDims(), map.getNumSymbols(), indices, op.getContext());
        input->set(where->source);
      }
      if (kept.contains(input->get()) && (!lead || elementsOf(lead->get()) < elementsOf(input->get())))
        lead = input;
    }
    op.setIndexingMapsAttr(OpBuilder(op).getAffineMapArrayAttr(maps));
    if (!lead)
      return;
    SmallVector<unsigned> order = loopOrder(maps[lead->getOperandNumber()], op.getNumLoops());
    if (!mayReorder(op, order))
      return;
    alignSmaller(op, *lead);
    reorder(op, order);
  }

  /// Transposes operands that are smaller than the one whose layout an op takes, such as the weights of a depthwise
  /// convolution, so that both have the same loop, the channels, innermost.
  void alignSmaller(linalg::GenericOp op, OpOperand &lead) {
    AffineMap read = op.getMatchingIndexingMap(&lead);
    if (read.getNumResults() == 0 || !isa<AffineDimExpr>(read.getResults().back()))
      return;
    AffineExpr lanes = read.getResults().back();
    OpBuilder builder(op);
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    for (OpOperand *input : op.getDpsInputOperands()) {
      AffineMap &map = maps[input->getOperandNumber()];
      const auto *found = llvm::find(map.getResults(), lanes);
      if (found == map.getResults().end() || elementsOf(input->get()) >= elementsOf(lead.get()) ||
          found + 1 == map.getResults().end())
        continue;
      SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, map.getNumResults()));
      std::rotate(order.begin() + (found - map.getResults().begin()),
                  order.begin() + (found - map.getResults().begin()) + 1, order.end());
      SmallVector<int64_t> dims = inverse(order);
      input->set(laidOut(builder, input->get(), dims));
      map = AffineMap::get(map.getNumDims(), 0, inSource(map.getResults(), dims), builder.getContext());
    }
    op.setIndexingMapsAttr(builder.getAffineMapArrayAttr(maps));
  }

  /// Returns true if the loops of an op may take another order, and readers of its results gain from it.
  static bool mayReorder(linalg::GenericOp op, ArrayRef<unsigned> order) {
    auto inits = op.getDpsInitsMutable();
    auto maps = llvm::map_range(inits, [&](OpOperand &init) { return op.getMatchingIndexingMap(&init); });
    if (isContraction(op) || !op.getBlock()->getOps<linalg::IndexOp>().empty() ||
        !llvm::all_of(maps, [](AffineMap map) { return map.isProjectedPermutation(); }))
      return false;
    return llvm::any_of(llvm::zip_equal(op->getResults(), maps), [&](auto entry) {
      auto [result, map] = entry;
      SmallVector<int64_t> dims = layoutOf(map, order);
      return llvm::any_of(result.getUsers(), [&](Operation *user) { return readsLayout(user, dims); });
    });
  }

  /// Returns the layout of a result if an op runs over its loops in another order: dim i of the result is dim [i] of the
  /// new one.
  static SmallVector<int64_t> layoutOf(AffineMap map, ArrayRef<unsigned> order) {
    auto placeOf = [&](int64_t dim) { return llvm::find(order, map.getDimPosition(dim)); };
    SmallVector<int64_t> own = llvm::to_vector(llvm::seq<int64_t>(0, map.getNumResults()));
    llvm::sort(own, [&](int64_t a, int64_t b) { return placeOf(a) < placeOf(b); });
    return inverse(own);
  }

  /// Returns the loops in the order in which `map` reads a tensor. The points of a window come last; loops that the
  /// tensor does not have stay in front of the others if they were there.
  static SmallVector<unsigned> loopOrder(AffineMap map, unsigned numLoops) {
    llvm::SmallSetVector<unsigned, 6> order;
    for (AffineExpr index : map.getResults())
      for (unsigned loop = 0; loop < numLoops; ++loop)
        if (index.isFunctionOfDim(loop)) {
          order.insert(loop);
          break;
        }
    SmallVector<unsigned> front, all;
    unsigned first = order.empty() ? 0 : *llvm::min_element(order);
    for (unsigned loop = 0; loop < first; ++loop)
      front.push_back(loop);
    all = front;
    all.append(order.begin(), order.end());
    for (unsigned loop = first; loop < numLoops; ++loop)
      if (!order.contains(loop))
        all.push_back(loop);
    return all;
  }

  /// Rewrites an op over its loops in another order, and its results in the same order.
  void reorder(linalg::GenericOp op, ArrayRef<unsigned> order) {
    OpBuilder builder(op);
    SmallVector<AffineExpr> places(order.size());
    SmallVector<utils::IteratorType> types;
    for (auto [position, loop] : llvm::enumerate(order)) {
      places[loop] = builder.getAffineDimExpr(position);
      types.push_back(op.getIteratorTypesArray()[loop]);
    }
    SmallVector<AffineMap> maps = llvm::map_to_vector(op.getIndexingMapsArray(), [&](AffineMap map) {
      return map.replaceDimsAndSymbols(places, {}, order.size(), 0);
    });
    SmallVector<Value> inits;
    SmallVector<SmallVector<int64_t>> layouts;
    for (OpOperand &init : op.getDpsInitsMutable()) {
      AffineMap &map = maps[init.getOperandNumber()];
      SmallVector<int64_t> dims = layoutOf(op.getMatchingIndexingMap(&init), order);
      map = AffineMap::get(map.getNumDims(), 0, inSource(map.getResults(), dims), builder.getContext());
      bool isRead = op.payloadUsesValueFromOperand(&init);
      RankedTensorType type = inSource(cast<RankedTensorType>(init.get().getType()), dims);
      inits.push_back(isRead ? laidOut(builder, init.get(), dims) : emptyOf(builder, op.getLoc(), type));
      layouts.push_back(std::move(dims));
    }
    auto ordered = linalg::GenericOp::create(builder, op.getLoc(), TypeRange(ValueRange(inits)), op.getInputs(), inits,
                                             maps, types);
    ordered->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    ordered.getRegion().takeBody(op.getRegion());
    for (auto [result, by, dims] : llvm::zip_equal(op->getResults(), ordered->getResults(), layouts))
      replace(builder, result, by, dims);
    op.erase();
  }

  // --- other ops ---------------------------------------------------------------------------------------------------

  void follow(tensor::PadOp op) {
    const Elsewhere *where = elsewhere(op.getSource());
    Value padding = op.getConstantPaddingValue();
    if (!where || !padding)
      return;
    OpBuilder builder(op);
    SmallVector<int64_t> dims = where->dims;
    auto pad = tensor::PadOp::create(builder, op.getLoc(), inSource(op.getResultType(), dims), where->source,
                                     inSource<OpFoldResult>(op.getMixedLowPad(), dims),
                                     inSource<OpFoldResult>(op.getMixedHighPad(), dims), padding);
    replace(builder, op, pad, dims);
    op.erase();
  }

  void follow(tensor::ConcatOp op) {
    const Elsewhere *lead = nullptr;
    for (Value input : op.getInputs())
      if (const Elsewhere *where = elsewhere(input); where && !lead)
        lead = where;
    if (!lead)
      return;
    OpBuilder builder(op);
    SmallVector<int64_t> dims = lead->dims;
    SmallVector<Value> inputs;
    for (Value input : op.getInputs())
      inputs.push_back(laidOut(builder, input, dims));
    auto concat = tensor::ConcatOp::create(builder, op.getLoc(), inSource(op.getResultType(), dims),
                                           dims[op.getDim()], inputs);
    replace(builder, op, concat, dims);
    op.erase();
  }

  void follow(tensor::InsertSliceOp op) {
    const Elsewhere *where = elsewhere(op.getSource());
    if (!where || op.getSourceType().getRank() != op.getDestType().getRank())
      return;
    OpBuilder builder(op);
    SmallVector<int64_t> dims = where->dims;
    Value source = where->source;
    auto insert = tensor::InsertSliceOp::create(builder, op.getLoc(), source, laidOut(builder, op.getDest(), dims),
                                                inSource<OpFoldResult>(op.getMixedOffsets(), dims),
                                                inSource<OpFoldResult>(op.getMixedSizes(), dims),
                                                inSource<OpFoldResult>(op.getMixedStrides(), dims));
    replace(builder, op, insert, dims);
    op.erase();
  }

  void follow(tensor::ExtractSliceOp op) {
    const Elsewhere *where = elsewhere(op.getSource());
    if (!where || op.getSourceType().getRank() != op.getType().getRank())
      return;
    OpBuilder builder(op);
    SmallVector<int64_t> dims = where->dims;
    auto extract = tensor::ExtractSliceOp::create(builder, op.getLoc(), where->source,
                                                  inSource<OpFoldResult>(op.getMixedOffsets(), dims),
                                                  inSource<OpFoldResult>(op.getMixedSizes(), dims),
                                                  inSource<OpFoldResult>(op.getMixedStrides(), dims));
    replace(builder, op, extract, dims);
    op.erase();
  }

  /// Follows a reshape whose dims lie beside each other in the source, such as one that splits channels into groups.
  template <typename Op> void followReshape(Op op) {
    if (kept.contains(op.getSrc()))
      kept.insert(op.getResult());
    const Elsewhere *where = elsewhere(op.getSrc());
    std::optional<Reshaped> reshaped;
    if (where)
      reshaped = reshapedIn(op, where->dims);
    if (!reshaped)
      return;
    OpBuilder builder(op);
    auto type = op.getResultType().clone(reshaped->shape);
    Value by = Op::create(builder, op.getLoc(), type, where->source, reshaped->groups);
    replace(builder, op, by, reshaped->dims);
    op.erase();
  }

  /// A transpose of the model reads where the elements are, and may be none there.
  void follow(linalg::TransposeOp op) {
    const Elsewhere *where = elsewhere(op.getInput());
    if (kept.contains(op.getInput()))
      moved[op->getResult(0)] = {op.getInput(), SmallVector<int64_t>(op.getPermutation())};
    if (!where || moved.contains(op->getResult(0)))
      return;
    OpBuilder builder(op);
    SmallVector<int64_t> dims;
    for (int64_t dim : op.getPermutation())
      dims.push_back(where->dims[dim]);
    replace(builder, op->getResult(0), where->source, dims);
    op.erase();
  }

  llvm::DenseMap<Value, Elsewhere> moved; ///< results of transposes
  llvm::SmallSetVector<Value, 8> kept;    ///< tensors whose layout readers keep
};
} // namespace

void tilewright::keepLayout(func::FuncOp function, ArrayRef<Value> results) {
  if (results.empty())
    return;
  LayoutKeeper keeper(results);
  for (Block &block : function.getBody())
    keeper.visit(block);
}
