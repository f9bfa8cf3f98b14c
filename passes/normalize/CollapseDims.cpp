// Collapses the dims that collapsibleDims() finds. Every op gets fewer and longer loops, and tensors that other ops
// compute or read are reshaped.
#include "passes/Passes.h"
#include "passes/normalize/CollapsibleDims.h"
#include "passes/support/EraseUnused.h"
#include "passes/target/TargetOrError.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include <numeric>

namespace tilewright {
#define GEN_PASS_DEF_COLLAPSEDIMS
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {
/// Returns, for each dim that a tensor will have, the dims that are collapsed into it.
SmallVector<ReassociationIndices> groupsOf(const llvm::BitVector &joined) {
  SmallVector<ReassociationIndices> groups = {{0}};
  for (unsigned dim = 0; dim < joined.size(); ++dim) {
    if (!joined[dim])
      groups.emplace_back();
    groups.back().push_back(dim + 1);
  }
  return groups;
}

/// Rewrites the ops of a function with collapsed dims.
class Collapser {
public:
  explicit Collapser(const CollapsibleDims &dims) : dims(dims) {}

  /// Returns true if anything has changed.
  bool run(func::FuncOp function) {
    SmallVector<Operation *> ops;
    function.walk([&](Operation *op) {
      if (isa<linalg::GenericOp, tensor::ExpandShapeOp>(op) && isChanged(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      if (auto generic = dyn_cast<linalg::GenericOp>(op))
        collapse(generic);
      else
        collapse(cast<tensor::ExpandShapeOp>(op));
    }
    for (Operation *op : llvm::reverse(ops))
      replace(op);
    if (!ops.empty())
      for (Block &block : function.getBody())
        eraseUnused(block); // the inits of replaced results
    return !ops.empty();
  }

private:
  bool isJoined(Value tensor) const { return dims.tensors.contains(tensor); }

  bool isChanged(Operation *op) const {
    auto known = dims.loops.find(op);
    return (known != dims.loops.end() && llvm::any_of(known->second, [](int64_t next) { return next >= 0; })) ||
           llvm::any_of(op->getOperands(), [&](Value value) { return isJoined(value); }) ||
           llvm::any_of(op->getResults(), [&](Value value) { return isJoined(value); });
  }

  SmallVector<ReassociationIndices> groupsOf(Value tensor) const {
    auto known = dims.tensors.find(tensor);
    return known == dims.tensors.end()
               ? ::groupsOf(
                     llvm::BitVector(std::max<int64_t>(0, cast<RankedTensorType>(tensor.getType()).getRank() - 1)))
               : ::groupsOf(known->second);
  }

  /// Returns the tensor with its new dims, reshaped right behind its definition.
  Value collapsed(Value tensor) {
    if (!isJoined(tensor))
      return tensor;
    if (Value known = made.lookup(tensor))
      return known;
    OpBuilder builder(tensor.getContext());
    builder.setInsertionPointAfterValue(tensor);
    auto view = tensor::CollapseShapeOp::create(builder, tensor.getLoc(), tensor, groupsOf(tensor));
    return made[tensor] = view.getResult();
  }

  /// Returns an init like `from` for a result of the given type.
  Value start(OpBuilder &builder, Value from, RankedTensorType type) {
    if (from.getType() == type)
      return from;
    Value empty = tensor::EmptyOp::create(builder, from.getLoc(), type.getShape(), type.getElementType());
    if (auto fill = from.getDefiningOp<linalg::FillOp>())
      return linalg::FillOp::create(builder, fill.getLoc(), fill.getInputs(), ValueRange(empty)).getResult(0);
    return empty;
  }

  RankedTensorType collapsedType(Value tensor) const {
    auto type = cast<RankedTensorType>(tensor.getType());
    SmallVector<int64_t> shape;
    for (const ReassociationIndices &group : groupsOf(tensor)) {
      if (type.getRank() == 0)
        break;
      shape.push_back(1);
      for (int64_t dim : group)
        shape.back() *= type.getDimSize(dim);
    }
    return RankedTensorType::get(shape, type.getElementType());
  }

  void collapse(linalg::GenericOp op) {
    OpBuilder builder(op);
    SmallVector<int64_t> loops = newLoops(op);
    SmallVector<utils::IteratorType> kinds(loops.empty() ? 0 : *llvm::max_element(loops) + 1);
    for (auto [loop, kind] : llvm::zip(loops, op.getIteratorTypesArray()))
      kinds[loop] = kind;
    SmallVector<Value> inputs, starts;
    SmallVector<AffineMap> maps;
    for (auto [input, map] : llvm::zip(op.getDpsInputs(), op.getIndexingMapsArray())) {
      bool whole = coversLoops(map, loops);
      inputs.push_back(whole ? collapsed(input) : repeated(builder, op, input, map, loops));
      maps.push_back(whole ? newMap(map, input, loops, kinds.size()) : repeatedMap(map, loops, kinds.size()));
    }
    for (auto [init, result] : llvm::zip(op.getDpsInits(), op.getResults())) {
      starts.push_back(isStart(init) ? start(builder, init, collapsedType(result)) : collapsed(init));
      maps.push_back(newMap(op.getIndexingMapsArray()[maps.size()], result, loops, kinds.size()));
    }
    auto changed =
        linalg::GenericOp::create(builder, op.getLoc(), TypeRange(ValueRange(starts)), inputs, starts, maps, kinds);
    IRMapping none;
    op.getRegion().cloneInto(&changed.getRegion(), none);
    changed->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    renumberIndices(changed, loops);
    for (auto [before, after] : llvm::zip(op.getResults(), changed.getResults()))
      made[before] = after;
  }

  /// Returns, for each loop, its new loop. New loops are in the order of their first old loops.
  SmallVector<int64_t> newLoops(linalg::GenericOp op) const {
    SmallVector<int64_t> next(op.getNumLoops(), -1), found(op.getNumLoops(), -1);
    if (auto known = dims.loops.find(op); known != dims.loops.end())
      next = known->second;
    int64_t count = 0;
    for (int64_t loop = 0; loop < static_cast<int64_t>(next.size()); ++loop)
      if (!llvm::is_contained(next, loop)) {
        for (int64_t member = loop; member >= 0; member = next[member])
          found[member] = count;
        ++count;
      }
    return found;
  }

  /// Returns true if, of the loops that are collapsed into one, the access varies along all or none.
  static bool coversLoops(AffineMap map, ArrayRef<int64_t> loops) {
    return llvm::all_of(llvm::enumerate(loops), [&](auto entry) {
      return llvm::all_of(llvm::enumerate(loops), [&](auto other) {
        return entry.value() != other.value() ||
               map.isFunctionOfDim(entry.index()) == map.isFunctionOfDim(other.index());
      });
    });
  }

  /// Returns the new loops along which an access varies, in order.
  static llvm::SmallSetVector<int64_t, 4> newLoopsOf(AffineMap map, ArrayRef<int64_t> loops) {
    SmallVector<int64_t> found;
    for (auto [loop, now] : llvm::enumerate(loops))
      if (map.isFunctionOfDim(loop))
        found.push_back(now);
    llvm::sort(found);
    return {found.begin(), found.end()};
  }

  static AffineMap repeatedMap(AffineMap map, ArrayRef<int64_t> loops, unsigned count) {
    SmallVector<AffineExpr> dims = llvm::map_to_vector(
        newLoopsOf(map, loops), [&](int64_t loop) { return getAffineDimExpr(loop, map.getContext()); });
    return AffineMap::get(count, 0, dims, map.getContext());
  }

  /// Returns the input with an element for each point of the new loops along which it varies.
  Value repeated(OpBuilder &builder, linalg::GenericOp op, Value input, AffineMap map, ArrayRef<int64_t> loops) {
    SmallVector<int64_t> ranges = op.getStaticLoopRanges(), shape;
    SmallVector<AffineExpr> exprs(loops.size(), getAffineConstantExpr(0, map.getContext()));
    SmallVector<ReassociationIndices> groups;
    for (int64_t now : newLoopsOf(map, loops)) {
      groups.emplace_back();
      for (int64_t loop : membersOf(op, now, loops)) {
        exprs[loop] = getAffineDimExpr(shape.size(), map.getContext());
        groups.back().push_back(shape.size());
        shape.push_back(ranges[loop]);
      }
    }
    Location loc = op.getLoc();
    Type element = getElementTypeOrSelf(input.getType());
    if (DenseElementsAttr value; matchPattern(input, m_Constant(&value)) && value.isSplat()) {
      auto flat = llvm::map_to_vector(groups, [&](const ReassociationIndices &group) {
        return std::accumulate(group.begin(), group.end(), int64_t(1),
                               [&](int64_t points, int64_t dim) { return points * shape[dim]; });
      });
      auto type = RankedTensorType::get(flat, element);
      return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, value.getSplatValue<Attribute>()));
    }
    AffineMap from = AffineMap::get(shape.size(), 0, map.replaceDimsAndSymbols(exprs, {}, shape.size(), 0).getResults(),
                                    map.getContext());
    AffineMap to = builder.getMultiDimIdentityMap(shape.size());
    Value empty = tensor::EmptyOp::create(builder, loc, shape, element);
    auto laidOut = linalg::GenericOp::create(
        builder, loc, empty.getType(), input, empty, {from, to},
        SmallVector<utils::IteratorType>(shape.size(), utils::IteratorType::parallel),
        [](OpBuilder &inner, Location at, ValueRange values) { linalg::YieldOp::create(inner, at, values.front()); });
    return tensor::CollapseShapeOp::create(builder, loc, laidOut.getResult(0), groups);
  }

  /// Returns the loops that are collapsed into a new one, outermost first.
  SmallVector<int64_t> membersOf(linalg::GenericOp op, int64_t now, ArrayRef<int64_t> loops) const {
    ArrayRef<int64_t> next = dims.loops.find(op)->second;
    SmallVector<int64_t> members;
    for (int64_t loop = 0; loop < static_cast<int64_t>(loops.size()); ++loop)
      if (loops[loop] == now && !llvm::is_contained(next, loop))
        for (int64_t member = loop; member >= 0; member = next[member])
          members.push_back(member);
    return members;
  }

  AffineMap newMap(AffineMap map, Value tensor, ArrayRef<int64_t> loops, unsigned count) {
    MLIRContext *context = map.getContext();
    SmallVector<AffineExpr> exprs =
        llvm::map_to_vector(loops, [&](int64_t loop) { return getAffineDimExpr(loop, context); });
    SmallVector<AffineExpr> results;
    // All members of a group now have the same index: a loop, or the only element of their dims.
    for (const ReassociationIndices &group : groupsOf(tensor))
      if (map.getNumResults() > 0)
        results.push_back(map.getResult(group.front()).replaceDims(exprs));
    return AffineMap::get(count, 0, results, context);
  }

  static void renumberIndices(linalg::GenericOp op, ArrayRef<int64_t> loops) {
    op.getBody()->walk([&](linalg::IndexOp index) { index.setDim(loops[index.getDim()]); });
  }

  void collapse(tensor::ExpandShapeOp op) {
    Value from = op.getSrc(), to = op.getResult();
    SmallVector<int64_t> newDim(op.getResultType().getRank());
    for (auto [number, group] : llvm::enumerate(groupsOf(to)))
      for (int64_t dim : group)
        newDim[dim] = number;
    SmallVector<ReassociationIndices> expanded = op.getReassociationIndices(), groups;
    if (cast<RankedTensorType>(from.getType()).getRank() > 0)
      for (const ReassociationIndices &group : groupsOf(from)) {
        llvm::SetVector<int64_t> targets;
        for (int64_t dim : group)
          for (int64_t target : expanded[dim])
            targets.insert(newDim[target]);
        groups.emplace_back(targets.begin(), targets.end());
      }
    OpBuilder builder(op);
    made[to] = tensor::ExpandShapeOp::create(builder, op.getLoc(), collapsedType(to), collapsed(from), groups);
  }

  /// Gives readers that were not collapsed the result in its old shape.
  void replace(Operation *op) {
    OpBuilder builder(op);
    for (Value result : op->getResults()) {
      if (result.use_empty())
        continue;
      Value now = made.lookup(result);
      if (now.getType() != result.getType())
        now = tensor::ExpandShapeOp::create(builder, op->getLoc(), result.getType(), now, groupsOf(result));
      result.replaceAllUsesWith(now);
    }
    op->erase();
  }

  const CollapsibleDims &dims;
  llvm::DenseMap<Value, Value> made;
};

struct CollapseDims : tilewright::impl::CollapseDimsBase<CollapseDims> {
  using CollapseDimsBase::CollapseDimsBase;

  void runOnOperation() override {
    FailureOr<Target> known = targetOrError(getOperation(), target);
    if (failed(known))
      return signalPassFailure();
    CollapsibleDims dims = collapsibleDims(getOperation(), *known);
    if (!Collapser(dims).run(getOperation()))
      markAllAnalysesPreserved();
  }
};
} // namespace
