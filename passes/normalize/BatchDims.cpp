#include "passes/normalize/BatchDims.h"

#include "passes/graph/Eligibility.h"
#include "passes/graph/TensorExpr.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// A contraction with one loop for several collapsed batch dims, the sizes of these dims, and the fill that the
/// contraction starts from.
struct FoldedBatch {
  linalg::LinalgOp op;
  unsigned loop;
  SmallVector<int64_t> sizes;
  linalg::FillOp start;
};

/// One dim of an operand, and the sizes of the dims that a reshape collapsed into it.
struct FoldedDim {
  unsigned dim;
  SmallVector<int64_t> sizes;
};

/// Returns the dim of an operand that a reshape collapsed from several, if there is exactly one.
std::optional<FoldedDim> foldedDim(Value operand) {
  auto collapse = operand.getDefiningOp<tensor::CollapseShapeOp>();
  if (!collapse || !collapse.getSrcType().hasStaticShape())
    return std::nullopt;
  std::optional<FoldedDim> found;
  for (auto [dim, group] : llvm::enumerate(collapse.getReassociationIndices())) {
    if (group.size() == 1)
      continue;
    auto sizes = llvm::map_to_vector(group, [&](int64_t each) { return collapse.getSrcType().getDimSize(each); });
    // Unit dims separate nothing.
    if (found || llvm::count_if(sizes, [](int64_t size) { return size != 1; }) < 2)
      return std::nullopt;
    found = FoldedDim{unsigned(dim), sizes};
  }
  return found;
}

/// Returns the coarsest dims that both lists refine. Each of them is one or several neighbouring dims of either list:
/// heads, if one list has the heads and the other one groups of heads.
SmallVector<int64_t> commonSizes(SmallVector<int64_t> first, SmallVector<int64_t> second) {
  if (first == second)
    return first;
  auto isOne = [](int64_t size) { return size == 1; };
  llvm::erase_if(first, isOne);
  llvm::erase_if(second, isOne);
  SmallVector<int64_t> common;
  // The product of each list is the size of the same loop, so neither ends before the other.
  for (size_t i = 0, j = 0; i < first.size();) {
    int64_t left = first[i++], right = second[j++];
    while (left != right) {
      if (left < right)
        left *= first[i++];
      else
        right *= second[j++];
    }
    common.push_back(left);
  }
  return common;
}

/// Returns, for each dim of `coarse`, the dims of `fine` that it consists of, or nothing if there are none.
std::optional<SmallVector<ReassociationIndices>> refinement(ArrayRef<int64_t> coarse, ArrayRef<int64_t> fine) {
  SmallVector<ReassociationIndices> groups;
  int64_t next = 0, end = fine.size();
  for (int64_t size : coarse) {
    ReassociationIndices group;
    for (int64_t points = 1; group.empty() || points < size; points *= fine[next++]) {
      if (next == end || size % (points * fine[next]) != 0)
        return std::nullopt;
      group.push_back(next);
    }
    groups.push_back(group);
  }
  return next == end ? std::optional(groups) : std::nullopt;
}

/// Returns the sizes into which a reader of the result expands the dim of the loop.
SmallVector<int64_t> sizesBehind(linalg::LinalgOp op, unsigned loop) {
  ArrayRef<AffineExpr> indices = op.getIndexingMapsArray()[2].getResults();
  auto dim = llvm::find(indices, getAffineDimExpr(loop, op.getContext())) - indices.begin();
  for (Operation *user : op->getUsers())
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(user); expand && expand.getResultType().hasStaticShape())
      return llvm::map_to_vector(expand.getReassociationIndices()[dim],
                                 [&](int64_t each) { return expand.getResultType().getDimSize(each); });
  return {};
}

/// Contractions that stay with IREE keep the form that its compiler knows.
bool isTakenByKernels(linalg::LinalgOp op) {
  FailureOr<TensorExpr> expr = describe(op);
  return succeeded(expr) && whyNotEligible(*expr).empty();
}

/// Returns true if the operand is only moved, so that no op computes it over its dims.
bool isMoved(Value operand) {
  Operation *source = operand.getDefiningOp();
  if (!source)
    return true;
  FailureOr<TensorExpr> expr = describe(source);
  return failed(expr) || expr->kind == ExprKind::movement;
}

std::optional<FoldedBatch> foldedBatch(linalg::LinalgOp op) {
  if (op.getNumDpsInputs() != 2 || !op.hasPureTensorSemantics())
    return std::nullopt;
  std::optional<FoldedDim> first = foldedDim(op.getDpsInputs()[0]), second = foldedDim(op.getDpsInputs()[1]);
  auto start = op.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  if ((!first && !second) || !start || !isTakenByKernels(op))
    return std::nullopt;
  FailureOr<linalg::ContractionDimensions> dims = linalg::inferContractionDims(op);
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  unsigned loop = first ? maps[0].getDimPosition(first->dim) : maps[1].getDimPosition(second->dim);
  if (failed(dims) || !llvm::is_contained(dims->batch, loop) ||
      (first && second && maps[1].getDimPosition(second->dim) != loop))
    return std::nullopt;
  SmallVector<int64_t> whole{op.getStaticLoopRanges()[loop]}, behind = sizesBehind(op, loop);
  ArrayRef<int64_t> left = first ? first->sizes : whole, right = second ? second->sizes : whole;
  // For example groups of heads, if queries come as heads; or heads of a batch, if values come as heads of all batches.
  bool laysApart = (first || isMoved(op.getDpsInputs()[0])) && (second || isMoved(op.getDpsInputs()[1]));
  if (laysApart && behind.size() > 1 && refinement(left, behind) && refinement(right, behind))
    return FoldedBatch{op, loop, behind, start};
  if (!first || !second)
    return std::nullopt;
  SmallVector<int64_t> sizes = commonSizes(first->sizes, second->sizes);
  return sizes.size() > 1 ? std::optional(FoldedBatch{op, loop, sizes, start}) : std::nullopt;
}

/// Replaces a contraction that has one loop for all batch dims by one that has a loop for each.
class Unfolder {
public:
  explicit Unfolder(const FoldedBatch &batch) : batch(batch), builder(batch.op), more(batch.sizes.size() - 1) {}

  /// Returns the reshape that collapses the dims of the new result for the readers of the old one.
  tensor::CollapseShapeOp unfold() {
    linalg::LinalgOp op = batch.op;
    linalg::FillOp fill = batch.start;
    Location loc = op.getLoc();
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    AffineMap result = op.getIndexingMapsArray()[2];
    SmallVector<Value> inputs;
    for (auto [input, map] : llvm::zip(op.getDpsInputs(), op.getIndexingMapsArray()))
      inputs.push_back(inputApart(input, map));
    Value empty = tensor::EmptyOp::create(builder, loc, shapeApart(type, result), type.getElementType());
    Value start = linalg::FillOp::create(builder, fill.getLoc(), fill.getInputs(), ValueRange(empty)).getResult(0);
    auto maps = llvm::map_to_vector(op.getIndexingMapsArray(), [&](AffineMap map) { return mapApart(map); });
    SmallVector<utils::IteratorType> loops = op.getIteratorTypesArray();
    loops.insert(loops.begin() + batch.loop, more, utils::IteratorType::parallel);
    auto apart = linalg::GenericOp::create(builder, loc, TypeRange(start.getType()), inputs, start, maps, loops);
    IRMapping none;
    op->getRegion(0).cloneInto(&apart.getRegion(), none);
    auto together = tensor::CollapseShapeOp::create(builder, loc, type, apart.getResult(0), groups(result));
    op->getResult(0).replaceAllUsesWith(together);
    op->erase();
    return together;
  }

private:
  bool isBatch(AffineExpr index) const { return index.isFunctionOfDim(batch.loop); }

  /// Returns the tensor that an input was collapsed from, with one dim for each of the loops.
  Value inputApart(Value input, AffineMap map) {
    if (Value finer = inputFiner(input, map))
      return finer;
    auto collapse = input.getDefiningOp<tensor::CollapseShapeOp>();
    RankedTensorType from = collapse.getSrcType();
    SmallVector<ReassociationIndices> groups;
    for (const ReassociationIndices &group : collapse.getReassociationIndices()) {
      ArrayRef<int64_t> dims = group;
      for (int64_t size : dims.size() > 1 ? batch.sizes : SmallVector<int64_t>{from.getDimSize(dims[0])}) {
        ReassociationIndices part;
        for (int64_t points = 1; part.empty() || points != size; dims = dims.drop_front()) {
          part.push_back(dims.front());
          points *= from.getDimSize(dims.front());
        }
        groups.push_back(part);
      }
      groups.back().append(dims.begin(), dims.end()); // unit dims
    }
    if (int64_t(groups.size()) == from.getRank())
      return collapse.getSrc();
    return tensor::CollapseShapeOp::create(builder, collapse.getLoc(), collapse.getSrc(), groups);
  }

  /// Returns the reshape that an input comes from, if it collapses no dims but those of the batch.
  tensor::CollapseShapeOp collapseOfBatch(Value input, AffineMap map) const {
    auto collapse = input.getDefiningOp<tensor::CollapseShapeOp>();
    if (!collapse)
      return {};
    for (auto [index, group] : llvm::zip_equal(map.getResults(), collapse.getReassociationIndices()))
      if (group.size() > 1 && !isBatch(index))
        return {};
    return collapse;
  }

  /// Like inputApart, if there are more loops than dims that the input was collapsed from; null if there are not.
  Value inputFiner(Value input, AffineMap map) {
    tensor::CollapseShapeOp collapse = collapseOfBatch(input, map);
    Value source = collapse ? collapse.getSrc() : input;
    auto from = cast<RankedTensorType>(source.getType());
    SmallVector<int64_t> shape;
    SmallVector<ReassociationIndices> groups;
    for (auto [position, index] : llvm::enumerate(map.getResults())) {
      auto dims = collapse ? collapse.getReassociationIndices()[position] : ReassociationIndices{int64_t(position)};
      auto own = llvm::map_to_vector(dims, [&](int64_t dim) { return from.getDimSize(dim); });
      ArrayRef<int64_t> sizes = isBatch(index) ? batch.sizes : own;
      auto finer = refinement(own, sizes);
      if (!finer)
        return {};
      for (ReassociationIndices &group : *finer) {
        for (int64_t &dim : group)
          dim += shape.size();
        groups.push_back(group);
      }
      llvm::append_range(shape, sizes);
    }
    if (ArrayRef(shape) == from.getShape())
      return source;
    auto type = RankedTensorType::get(shape, from.getElementType());
    return tensor::ExpandShapeOp::create(builder, input.getLoc(), type, source, groups);
  }

  AffineMap mapApart(AffineMap map) {
    SmallVector<AffineExpr> exprs;
    for (unsigned dim = 0; dim < map.getNumDims(); ++dim)
      exprs.push_back(builder.getAffineDimExpr(dim > batch.loop ? dim + more : dim));
    SmallVector<AffineExpr> results;
    for (AffineExpr index : map.getResults()) {
      results.push_back(index.replaceDims(exprs));
      for (unsigned next = 1; isBatch(index) && next <= more; ++next)
        results.push_back(builder.getAffineDimExpr(batch.loop + next));
    }
    return AffineMap::get(map.getNumDims() + more, 0, results, builder.getContext());
  }

  SmallVector<int64_t> shapeApart(RankedTensorType type, AffineMap map) const {
    SmallVector<int64_t> shape;
    for (auto [size, index] : llvm::zip_equal(type.getShape(), map.getResults()))
      shape.append(isBatch(index) ? batch.sizes : SmallVector<int64_t>{size});
    return shape;
  }

  SmallVector<ReassociationIndices> groups(AffineMap map) const {
    SmallVector<ReassociationIndices> found;
    int64_t next = 0;
    for (AffineExpr index : map.getResults()) {
      ReassociationIndices group(isBatch(index) ? more + 1 : 1);
      for (int64_t &dim : group)
        dim = next++;
      found.push_back(group);
    }
    return found;
  }

  const FoldedBatch &batch;
  OpBuilder builder;
  unsigned more; ///< number of loops that are added
};

/// Returns true if an op computes each element of its result from the tensor's element at the same index and from
/// scalars.
bool isElementwiseOf(linalg::GenericOp op, Value tensor) {
  if (!op)
    return false;
  auto reads = [&](OpOperand *input) {
    AffineMap map = op.getMatchingIndexingMap(input);
    return map.getNumResults() == 0 || (input->get() == tensor && map.isIdentity());
  };
  return op->getNumResults() == 1 && op.getNumParallelLoops() == op.getNumLoops() && !op.hasIndexSemantics() &&
         op.getDpsInits()[0].getDefiningOp<tensor::EmptyOp>() &&
         op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity() &&
         llvm::all_of(op.getDpsInputOperands(), reads);
}

/// Moves elementwise ops from behind a reshape to in front of it. Returns the reshapes of their results.
SmallVector<tensor::CollapseShapeOp> computeApart(tensor::CollapseShapeOp collapse) {
  SmallVector<tensor::CollapseShapeOp> moved;
  for (Operation *user : llvm::make_early_inc_range(collapse->getUsers())) {
    auto op = dyn_cast<linalg::GenericOp>(user);
    if (!isElementwiseOf(op, collapse))
      continue;
    OpBuilder builder(op);
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    ArrayRef<int64_t> shape = collapse.getSrcType().getShape();
    AffineMap identity = builder.getMultiDimIdentityMap(shape.size()),
              scalar = AffineMap::get(shape.size(), 0, builder.getContext());
    SmallVector<Value> inputs;
    SmallVector<AffineMap> maps;
    for (Value input : op.getDpsInputs()) {
      bool isWhole = input == collapse;
      inputs.push_back(isWhole ? collapse.getSrc() : input);
      maps.push_back(isWhole ? identity : scalar);
    }
    maps.push_back(identity);
    Value empty = tensor::EmptyOp::create(builder, op.getLoc(), shape, type.getElementType());
    SmallVector<utils::IteratorType> loops(shape.size(), utils::IteratorType::parallel);
    auto apart =
        linalg::GenericOp::create(builder, op.getLoc(), TypeRange(empty.getType()), inputs, empty, maps, loops);
    IRMapping none;
    op->getRegion(0).cloneInto(&apart.getRegion(), none);
    moved.push_back(tensor::CollapseShapeOp::create(builder, collapse.getLoc(), type, apart.getResult(0),
                                                    collapse.getReassociationIndices()));
    op->getResult(0).replaceAllUsesWith(moved.back());
    op.erase();
  }
  return moved;
}

/// Lets reshapes that undo the given one read its source instead.
void skipWhereUndone(tensor::CollapseShapeOp collapse) {
  for (Operation *user : llvm::make_early_inc_range(collapse->getUsers())) {
    auto expand = dyn_cast<tensor::ExpandShapeOp>(user);
    if (!expand || expand.getResultType() != collapse.getSrcType() ||
        expand.getReassociationIndices() != collapse.getReassociationIndices())
      continue;
    expand.replaceAllUsesWith(collapse.getSrc());
    expand.erase();
  }
}
} // namespace

void tilewright::keepBatchDimsApart(func::FuncOp function) {
  SmallVector<linalg::LinalgOp> ops;
  function.walk([&](linalg::LinalgOp op) {
    if (linalg::isaContractionOpInterface(op))
      ops.push_back(op);
  });
  llvm::SetVector<Operation *> reshapes;
  // In program order, because the operand of a contraction may be the collapsed result of an earlier one.
  for (linalg::LinalgOp op : ops)
    if (std::optional<FoldedBatch> batch = foldedBatch(op)) {
      for (Value input : op.getDpsInputs())
        if (auto collapse = input.getDefiningOp<tensor::CollapseShapeOp>())
          reshapes.insert(collapse);
      tensor::CollapseShapeOp together = Unfolder(*batch).unfold();
      reshapes.insert(together);
      for (SmallVector<tensor::CollapseShapeOp> moved{together}; !moved.empty();) {
        SmallVector<tensor::CollapseShapeOp> behind = computeApart(moved.pop_back_val());
        reshapes.insert_range(behind);
        llvm::append_range(moved, behind);
      }
    }
  for (Operation *reshape : reshapes)
    skipWhereUndone(cast<tensor::CollapseShapeOp>(reshape));
  for (Operation *reshape : reshapes)
    if (reshape->use_empty())
      reshape->erase();
}
