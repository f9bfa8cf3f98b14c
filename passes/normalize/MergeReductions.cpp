#include "passes/normalize/MergeReductions.h"

#include "passes/graph/Rounding.h"
#include "passes/graph/TensorExpr.h"
#include "passes/normalize/CollapsibleDims.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// Returns how a generic combines the elements of its only input, if it does nothing else and the combination is
/// idempotent.
std::optional<vector::CombiningKind> plainKind(linalg::GenericOp op) {
  if (op.getNumDpsInputs() != 1 || op.getNumResults() != 1 || op.getNumReductionLoops() == 0 ||
      !op.hasPureTensorSemantics() || !llvm::hasNItems(*op.getBody(), 2))
    return std::nullopt;
  std::optional<vector::CombiningKind> kind =
      combiningKind(op.getBody()->getArguments().back(), op.getBody()->getTerminator()->getOperand(0));
  using Kind = vector::CombiningKind;
  switch (kind.value_or(Kind::ADD)) {
  case Kind::AND:
  case Kind::OR:
  case Kind::MAXIMUMF:
  case Kind::MAXNUMF:
  case Kind::MAXSI:
  case Kind::MAXUI:
  case Kind::MINIMUMF:
  case Kind::MINNUMF:
  case Kind::MINSI:
  case Kind::MINUI:
    return kind;
  default:
    return std::nullopt;
  }
}

/// The tensor behind views that add unit dims, and, for each dim of the view, the tensor's dim or -1 for an added dim.
struct Viewed {
  Value tensor;
  SmallVector<int64_t> dims;
};

Viewed throughUnitDims(Value value) {
  Viewed viewed{value, llvm::to_vector(llvm::seq<int64_t>(0, cast<RankedTensorType>(value.getType()).getRank()))};
  while (auto expand = viewed.tensor.getDefiningOp<tensor::ExpandShapeOp>()) {
    if (!addsUnitDims(expand))
      return viewed;
    SmallVector<int64_t> behind(expand.getResultType().getRank(), -1);
    for (auto [dim, position] : llvm::enumerate(placesOf(expand)))
      behind[position] = dim;
    for (int64_t &dim : viewed.dims)
      dim = dim < 0 ? -1 : behind[dim];
    viewed.tensor = expand.getSrc();
  }
  return viewed;
}

/// Returns the reduction whose results only `later` reads, if one reduction can do the work of both, or null.
linalg::GenericOp mergeable(linalg::GenericOp later, const Viewed &viewed) {
  auto earlier = viewed.tensor.getDefiningOp<linalg::GenericOp>();
  bool isAlone = viewed.tensor.hasOneUse();
  for (Value value = later.getDpsInputs()[0]; value != viewed.tensor; value = value.getDefiningOp()->getOperand(0))
    isAlone &= value.hasOneUse();
  if (!earlier || !isAlone || !plainKind(earlier) || plainKind(earlier) != plainKind(later))
    return {};
  TypedAttr start = constantElement(later.getDpsInits()[0]);
  bool isSame = start && start == constantElement(earlier.getDpsInits()[0]);
  bool isPlain =
      llvm::all_of(later.getIndexingMapsArray(), [](AffineMap map) { return map.isProjectedPermutation(); }) &&
      llvm::all_of(earlier.getIndexingMapsArray(), [](AffineMap map) { return map.isProjectedPermutation(); });
  return isSame && isPlain ? earlier : linalg::GenericOp();
}

/// Lets the later reduction read the input of the earlier one, whose reduced loops become the last ones.
void merge(linalg::GenericOp later, linalg::GenericOp earlier, const Viewed &viewed) {
  OpBuilder builder(later);
  AffineMap read = later.getIndexingMapsArray()[0], result = later.getIndexingMapsArray()[1];
  SmallVector<utils::IteratorType> loops = later.getIteratorTypesArray();
  SmallVector<AffineExpr> exprs(earlier.getNumLoops());
  for (auto [index, dim] : llvm::zip(read.getResults(), viewed.dims))
    if (dim >= 0)
      exprs[earlier.getIndexingMapsArray()[1].getDimPosition(dim)] = index;
  for (AffineExpr &expr : exprs)
    if (!expr) {
      expr = builder.getAffineDimExpr(loops.size());
      loops.push_back(utils::IteratorType::reduction);
    }
  AffineMap whole = earlier.getIndexingMapsArray()[0].replaceDimsAndSymbols(exprs, {}, loops.size(), 0);
  AffineMap kept = AffineMap::get(loops.size(), 0, result.getResults(), builder.getContext());
  // Reduced loops over added unit dims no longer index any tensor.
  llvm::SmallBitVector unused = getUnusedDimsBitVector({whole, kept});
  for (int64_t loop = loops.size() - 1; loop >= 0; --loop)
    if (unused[loop])
      loops.erase(loops.begin() + loop);
  auto merged = linalg::GenericOp::create(builder, later.getLoc(), later.getResultTypes(), earlier.getDpsInputs(),
                                          later.getDpsInits(), compressUnusedDims(ArrayRef{whole, kept}), loops);
  merged.getRegion().takeBody(later.getRegion());
  later.replaceAllUsesWith(merged.getResults());
  Value between = later.getDpsInputs()[0];
  later.erase();
  while (between != viewed.tensor) {
    Operation *view = between.getDefiningOp();
    between = view->getOperand(0);
    view->erase();
  }
  earlier.erase();
}
} // namespace

void tilewright::mergeReductions(func::FuncOp function) {
  SmallVector<linalg::GenericOp> generics;
  function.walk([&](linalg::GenericOp op) { generics.push_back(op); });
  // In program order, because a source that reduces three dims gives a chain of three reductions.
  for (linalg::GenericOp later : generics) {
    if (!plainKind(later))
      continue;
    Viewed viewed = throughUnitDims(later.getDpsInputs()[0]);
    if (linalg::GenericOp earlier = mergeable(later, viewed))
      merge(later, earlier, viewed);
  }
}
