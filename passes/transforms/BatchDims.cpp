#include "passes/transforms/BatchDims.h"
#include "passes/analysis/TensorExpr.h"
#include "passes/plan/Eligibility.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// A contraction, the loop that stands for several batch dims, their sizes, and what its result is filled with before.
struct FoldedBatch {
  linalg::LinalgOp op;
  unsigned loop;
  SmallVector<int64_t> sizes;
  linalg::FillOp start;
};

/// One dim of an operand, and the sizes of the dims that it was before a reshape.
struct FoldedDim {
  unsigned dim;
  SmallVector<int64_t> sizes;
};

/// The dim, where it is the only one that is several before the reshape that gives the operand.
std::optional<FoldedDim> foldedDim(Value operand) {
  auto collapse = operand.getDefiningOp<tensor::CollapseShapeOp>();
  if (!collapse || !collapse.getSrcType().hasStaticShape())
    return std::nullopt;
  std::optional<FoldedDim> found;
  for (auto [dim, group] : llvm::enumerate(collapse.getReassociationIndices())) {
    if (group.size() == 1)
      continue;
    auto sizes = llvm::map_to_vector(group, [&](int64_t each) { return collapse.getSrcType().getDimSize(each); });
    // Dims of one point keep nothing apart.
    if (found || llvm::count_if(sizes, [](int64_t size) { return size != 1; }) < 2)
      return std::nullopt;
    found = FoldedDim{unsigned(dim), sizes};
  }
  return found;
}

/// The dims that both have, each one or several neighbours of either: heads, where the other's are groups of heads.
SmallVector<int64_t> commonSizes(SmallVector<int64_t> first, SmallVector<int64_t> second) {
  if (first == second)
    return first;
  auto isOne = [](int64_t size) { return size == 1; };
  llvm::erase_if(first, isOne);
  llvm::erase_if(second, isOne);
  SmallVector<int64_t> common;
  // The products of both are the points of one loop, so neither ends before the other.
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

/// IREE's own contractions stay as its compiler knows them.
bool isTakenByKernels(linalg::LinalgOp op) {
  FailureOr<TensorExpr> expr = describe(op);
  return succeeded(expr) && whyNotEligible(*expr).empty();
}

std::optional<FoldedBatch> foldedBatch(linalg::LinalgOp op) {
  if (!linalg::isaContractionOpInterface(op) || op.getNumDpsInputs() != 2 || !op.hasPureTensorSemantics())
    return std::nullopt;
  std::optional<FoldedDim> first = foldedDim(op.getDpsInputs()[0]), second = foldedDim(op.getDpsInputs()[1]);
  auto start = op.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  if (!first || !second || !start || !isTakenByKernels(op))
    return std::nullopt;
  FailureOr<linalg::ContractionDimensions> dims = linalg::inferContractionDims(op);
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  unsigned loop = maps[0].getDimPosition(first->dim);
  if (failed(dims) || maps[1].getDimPosition(second->dim) != loop || !llvm::is_contained(dims->batch, loop))
    return std::nullopt;
  SmallVector<int64_t> sizes = commonSizes(first->sizes, second->sizes);
  return sizes.size() > 1 ? std::optional(FoldedBatch{op, loop, sizes, start}) : std::nullopt;
}

/// Puts a contraction with a loop for each batch dim in the place of one with a loop for all of them.
class Unfolder {
public:
  explicit Unfolder(const FoldedBatch &batch) : batch(batch), builder(batch.op), more(batch.sizes.size() - 1) {}

  /// The reshape that lays the dims of the new result together for those who read the old one.
  tensor::CollapseShapeOp unfold() {
    linalg::LinalgOp op = batch.op;
    linalg::FillOp fill = batch.start;
    Location loc = op.getLoc();
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    AffineMap result = op.getIndexingMapsArray()[2];
    auto inputs = llvm::map_to_vector(op.getDpsInputs(), [&](Value input) { return inputApart(input); });
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

  /// What an input is laid together from, with one dim for each of the loops.
  Value inputApart(Value input) {
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
      groups.back().append(dims.begin(), dims.end()); // of one point
    }
    if (int64_t(groups.size()) == from.getRank())
      return collapse.getSrc();
    return tensor::CollapseShapeOp::create(builder, collapse.getLoc(), collapse.getSrc(), groups);
  }

  AffineMap mapApart(AffineMap map) {
    SmallVector<AffineExpr> places;
    for (unsigned dim = 0; dim < map.getNumDims(); ++dim)
      places.push_back(builder.getAffineDimExpr(dim > batch.loop ? dim + more : dim));
    SmallVector<AffineExpr> results;
    for (AffineExpr index : map.getResults()) {
      results.push_back(index.replaceDims(places));
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
  unsigned more; ///< loops than the one
};

/// Those who lay the dims apart again read them as they were.
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
  function.walk([&](linalg::LinalgOp op) { ops.push_back(op); });
  llvm::SetVector<Operation *> reshapes;
  // In order: the operand of a contraction may be what the one before it was laid together from.
  for (linalg::LinalgOp op : ops)
    if (std::optional<FoldedBatch> batch = foldedBatch(op)) {
      for (Value input : op.getDpsInputs())
        reshapes.insert(input.getDefiningOp());
      reshapes.insert(Unfolder(*batch).unfold());
    }
  for (Operation *reshape : reshapes)
    skipWhereUndone(cast<tensor::CollapseShapeOp>(reshape));
  for (Operation *reshape : reshapes)
    if (reshape->use_empty())
      reshape->erase();
}
