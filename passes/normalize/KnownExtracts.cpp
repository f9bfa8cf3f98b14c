// The tensor becomes an operand. The loops of a generic span its operands' dims, so a tensor that is larger along a dim
// is sliced first.
#include "passes/normalize/KnownExtracts.h"

#include "passes/graph/TensorExpr.h"
#include "passes/support/EraseUnused.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tilewright;

/// Returns the constant that an index of a body is, if it is one: a constant operand holds the same number everywhere.
static std::optional<int64_t> constantIndex(linalg::GenericOp op, Value index) {
  if (auto cast = index.getDefiningOp<arith::IndexCastOp>())
    index = cast.getIn();
  if (auto argument = dyn_cast<BlockArgument>(index); argument && argument.getOwner() == op.getBody())
    index = op->getOperand(argument.getArgNumber());
  auto number = dyn_cast_or_null<IntegerAttr>(constantElement(index));
  return number ? std::optional(number.getInt()) : std::nullopt;
}

/// Returns where the loops read the tensor, or nothing if the body computes an index, or one may lie outside.
static std::optional<AffineMap> knownPlace(linalg::GenericOp op, tensor::ExtractOp extract) {
  SmallVector<int64_t> loops = op.getStaticLoopRanges();
  SmallVector<AffineExpr> place;
  for (auto [index, extent] : llvm::zip(extract.getIndices(), extract.getTensor().getType().getShape())) {
    if (auto dim = index.getDefiningOp<linalg::IndexOp>(); dim && loops[dim.getDim()] <= extent) {
      place.push_back(getAffineDimExpr(dim.getDim(), op.getContext()));
      continue;
    }
    std::optional<int64_t> constant = constantIndex(op, index);
    if (!constant || *constant < 0 || *constant >= extent)
      return std::nullopt;
    place.push_back(getAffineConstantExpr(*constant, op.getContext()));
  }
  return AffineMap::get(loops.size(), 0, place, op.getContext());
}

/// Returns the part of a tensor that the loops span; the whole tensor along dims at a constant index.
static Value spanned(OpBuilder &builder, linalg::GenericOp op, Value tensor, AffineMap place) {
  SmallVector<int64_t> loops = op.getStaticLoopRanges();
  SmallVector<OpFoldResult> offsets, sizes, strides;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(tensor.getType()).getShape();
  bool isWhole = true;
  for (auto [index, extent] : llvm::zip(place.getResults(), shape)) {
    auto dim = dyn_cast<AffineDimExpr>(index);
    int64_t size = dim ? loops[dim.getPosition()] : extent;
    isWhole &= size == extent;
    offsets.push_back(builder.getIndexAttr(0));
    sizes.push_back(builder.getIndexAttr(size));
    strides.push_back(builder.getIndexAttr(1));
  }
  return isWhole ? tensor
                 : tensor::ExtractSliceOp::create(builder, op.getLoc(), tensor, offsets, sizes, strides).getResult();
}

static void readKnown(linalg::GenericOp op) {
  SmallVector<std::pair<tensor::ExtractOp, AffineMap>> known;
  for (auto extract : op.getBody()->getOps<tensor::ExtractOp>())
    if (extract.getTensor().getType().hasStaticShape() && extract.getTensor().getParentBlock() != op.getBody())
      if (std::optional<AffineMap> place = knownPlace(op, extract))
        known.push_back({extract, *place});
  if (known.empty())
    return;
  OpBuilder builder(op);
  SmallVector<Value> inputs = op.getDpsInputs();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  for (auto &[extract, place] : known) {
    unsigned number = inputs.size();
    inputs.push_back(spanned(builder, op, extract.getTensor(), place));
    maps.insert(maps.begin() + number, place);
    extract.replaceAllUsesWith(Value(op.getBody()->insertArgument(number, extract.getType(), extract.getLoc())));
    extract.erase();
  }
  eraseUnused(*op.getBody());
  auto generic = linalg::GenericOp::create(builder, op.getLoc(), op->getResultTypes(), inputs, op.getDpsInits(), maps,
                                           op.getIteratorTypesArray());
  generic.getRegion().takeBody(op.getRegion());
  op->replaceAllUsesWith(generic.getResults());
  op->erase();
}

void tilewright::readKnownExtracts(Operation *root) {
  SmallVector<linalg::GenericOp> generics;
  root->walk([&](linalg::GenericOp op) {
    if (op.hasPureTensorSemantics() && !llvm::is_contained(op.getStaticLoopRanges(), ShapedType::kDynamic))
      generics.push_back(op);
  });
  for (linalg::GenericOp op : generics)
    readKnown(op);
}
