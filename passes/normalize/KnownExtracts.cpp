// The part of the tensor that the loops read becomes an operand: it is sliced first, because the loops of a generic
// span its operands' dims.
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

namespace {
/// The part of a tensor that loops read, and where each point of the loops reads it.
struct Part {
  SmallVector<OpFoldResult> offsets, sizes;
  SmallVector<AffineExpr> place;
};
} // namespace

/// Returns the part, or nothing if the body computes an index, or one may lie outside of the tensor.
static std::optional<Part> partOf(linalg::GenericOp op, tensor::ExtractOp extract) {
  SmallVector<int64_t> loops = op.getStaticLoopRanges();
  Builder builder(op.getContext());
  Part part;
  for (auto [index, extent] : llvm::zip(extract.getIndices(), extract.getTensor().getType().getShape())) {
    auto dim = index.getDefiningOp<linalg::IndexOp>();
    std::optional<int64_t> constant = dim ? std::optional<int64_t>(0) : constantIndex(op, index);
    int64_t size = dim ? loops[dim.getDim()] : 1;
    if (!constant || *constant < 0 || *constant + size > extent)
      return std::nullopt;
    part.offsets.push_back(builder.getIndexAttr(*constant));
    part.sizes.push_back(builder.getIndexAttr(size));
    part.place.push_back(dim ? builder.getAffineDimExpr(dim.getDim()) : builder.getAffineConstantExpr(0));
  }
  return part;
}

/// Returns the operand that the op copies as it is, or null.
static Value copiedBy(linalg::GenericOp op) {
  auto element = dyn_cast<BlockArgument>(op.getBody()->getTerminator()->getOperand(0));
  if (op->getNumResults() != 1 || !element || element.getOwner() != op.getBody() ||
      op.getNumReductionLoops() > 0 || !op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity())
    return {};
  OpOperand &operand = op->getOpOperand(element.getArgNumber());
  SmallVector<int64_t> loops = op.getStaticLoopRanges();
  for (auto [position, index] : llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults())) {
    bool isPoint = position < loops.size() && loops[position] == 1 && isa<AffineConstantExpr>(index);
    if (!isPoint && index != getAffineDimExpr(position, op.getContext()))
      return {};
  }
  return operand.get().getType() == op.getResult(0).getType() ? operand.get() : Value();
}

static void readKnown(linalg::GenericOp op) {
  SmallVector<std::pair<tensor::ExtractOp, Part>> known;
  for (auto extract : op.getBody()->getOps<tensor::ExtractOp>())
    if (extract.getTensor().getType().hasStaticShape() && extract.getTensor().getParentBlock() != op.getBody())
      if (std::optional<Part> part = partOf(op, extract))
        known.push_back({extract, *part});
  if (known.empty())
    return;
  OpBuilder builder(op);
  SmallVector<Value> inputs = op.getDpsInputs();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  for (auto &[extract, part] : known) {
    unsigned number = inputs.size();
    SmallVector<OpFoldResult> strides(part.place.size(), builder.getIndexAttr(1));
    Value tensor = extract.getTensor();
    inputs.push_back(
        builder.createOrFold<tensor::ExtractSliceOp>(op.getLoc(), tensor, part.offsets, part.sizes, strides));
    maps.insert(maps.begin() + number, AffineMap::get(op.getNumLoops(), 0, part.place, op.getContext()));
    extract.replaceAllUsesWith(Value(op.getBody()->insertArgument(number, extract.getType(), extract.getLoc())));
    extract.erase();
  }
  eraseUnused(*op.getBody());
  auto generic = linalg::GenericOp::create(builder, op.getLoc(), op->getResultTypes(), inputs, op.getDpsInits(), maps,
                                           op.getIteratorTypesArray());
  generic.getRegion().takeBody(op.getRegion());
  Value copied = copiedBy(generic);
  op->replaceAllUsesWith(copied ? ValueRange(copied) : ValueRange(generic.getResults()));
  op->erase();
  if (copied)
    generic->erase();
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
