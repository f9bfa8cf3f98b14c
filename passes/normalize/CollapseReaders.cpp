// Visits the ops in their order, so that the reshape of one op's result is known when its readers are visited. (MLIR's
// own patterns, linalg::populateFoldReshapeOpsByCollapsingPatterns, refuse operands that are broadcast along a unit
// dim, as gains and gates of channels are.)
#include "passes/normalize/CollapseReaders.h"

#include "passes/support/EraseUnused.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tilewright;

/// The mark of a reshape of a contraction's result, within the pass.
static constexpr StringLiteral kOfContraction = "reshapes-contraction";

namespace {
/// How an op reads or writes a tensor over collapsed loops.
struct CollapsedAccess {
  SmallVector<ReassociationIndices> groups; ///< dims of the tensor that become one
  SmallVector<AffineExpr> index;            ///< by group
};

/// An elementwise op, and the loops that become one.
class ReaderCollapser {
public:
  ReaderCollapser(linalg::GenericOp op, ArrayRef<ReassociationIndices> loops) : op(op), loops(loops) {}

  /// Returns the reshape of the result, or null if the op cannot be collapsed.
  tensor::ExpandShapeOp collapse() {
    SmallVector<CollapsedAccess> accesses;
    for (AffineMap map : op.getIndexingMapsArray()) {
      std::optional<CollapsedAccess> access = collapsed(map);
      if (!access)
        return {};
      accesses.push_back(std::move(*access));
    }
    OpBuilder builder(op);
    SmallVector<Value> inputs;
    SmallVector<AffineMap> maps;
    for (auto [operand, access] : llvm::zip(op->getOperands(), accesses)) {
      inputs.push_back(reshaped(builder, operand, access.groups));
      maps.push_back(AffineMap::get(loops.size(), 0, access.index, builder.getContext()));
    }
    Value init = inputs.pop_back_val();
    SmallVector<utils::IteratorType> types(loops.size(), utils::IteratorType::parallel);
    auto narrow = linalg::GenericOp::create(builder, op.getLoc(), TypeRange(init.getType()), inputs, init, maps, types);
    narrow->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    narrow.getRegion().takeBody(op.getRegion());
    auto expanded = tensor::ExpandShapeOp::create(builder, op.getLoc(), op.getResult(0).getType(), narrow.getResult(0),
                                                  accesses.back().groups);
    op.getResult(0).replaceAllUsesWith(expanded);
    op.erase();
    return expanded;
  }

private:
  /// Returns the access over collapsed loops; nothing if it varies along only a part of loops that become one.
  std::optional<CollapsedAccess> collapsed(AffineMap map) const {
    CollapsedAccess access;
    ReassociationIndices units; // dims of one point in front of all others
    int64_t place = 0, rank = map.getNumResults();
    while (place < rank) {
      if (auto constant = dyn_cast<AffineConstantExpr>(map.getResult(place))) {
        (access.groups.empty() ? units : access.groups.back()).push_back(place++);
        continue;
      }
      auto first = dyn_cast<AffineDimExpr>(map.getResult(place));
      const auto *group = first ? llvm::find_if(loops,
                                                [&](const ReassociationIndices &own) {
                                                  return own.front() == static_cast<int64_t>(first.getPosition());
                                                })
                                : loops.end();
      if (group == loops.end())
        return std::nullopt;
      access.groups.emplace_back(std::exchange(units, {}));
      for (int64_t loop : *group) {
        if (place >= rank || map.getResult(place) != getAffineDimExpr(loop, map.getContext()))
          return std::nullopt;
        access.groups.back().push_back(place++);
      }
      access.index.push_back(getAffineDimExpr(group - loops.begin(), map.getContext()));
    }
    return access; // if all dims have one point, there is no group, and the tensor becomes a scalar
  }

  /// Returns the tensor with the dims of each group collapsed; an operand may also be a number, which stays.
  static Value reshaped(OpBuilder &builder, Value tensor, ArrayRef<ReassociationIndices> groups) {
    auto type = dyn_cast<RankedTensorType>(tensor.getType());
    if (!type || static_cast<int64_t>(groups.size()) == type.getRank())
      return tensor;
    auto target = tensor::CollapseShapeOp::inferCollapsedType(type, groups);
    if (auto expand = tensor.getDefiningOp<tensor::ExpandShapeOp>(); expand && expand.getSrcType() == target)
      return expand.getSrc();
    if (tensor.getDefiningOp<tensor::EmptyOp>())
      return tensor::EmptyOp::create(builder, tensor.getLoc(), target.getShape(), target.getElementType());
    return tensor::CollapseShapeOp::create(builder, tensor.getLoc(), target, tensor, groups);
  }

  linalg::GenericOp op;
  ArrayRef<ReassociationIndices> loops;
};

/// Returns true for elementwise ops of one result over all of their loops.
bool isElementwise(linalg::GenericOp op) {
  return op.getNumParallelLoops() == op.getNumLoops() && op.getNumDpsInits() == 1 && op->getNumResults() == 1 &&
         op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity() && !op.hasDynamicShape() &&
         op.getBlock()->getOps<linalg::IndexOp>().empty();
}
} // namespace

void tilewright::markReshape(tensor::ExpandShapeOp reshape) {
  reshape->setDiscardableAttr(kOfContraction, UnitAttr::get(reshape.getContext()));
}

void tilewright::collapseReaders(func::FuncOp function) {
  bool found = false;
  function.walk([&](linalg::GenericOp op) {
    if (!isElementwise(op))
      return;
    for (OpOperand *input : op.getDpsInputOperands()) {
      auto reshape = input->get().getDefiningOp<tensor::ExpandShapeOp>();
      if (!reshape || !reshape->hasAttr(kOfContraction) || !op.getMatchingIndexingMap(input).isIdentity())
        continue;
      SmallVector<ReassociationIndices> loops = reshape.getReassociationIndices();
      if (tensor::ExpandShapeOp result = ReaderCollapser(op, loops).collapse()) {
        markReshape(result);
        found = true;
      }
      return;
    }
  });
  function.walk([](tensor::ExpandShapeOp reshape) { reshape->removeDiscardableAttr(kOfContraction); });
  if (found)
    for (Block &block : function.getBody())
      eraseUnused(block); // reshapes whose readers read their source
}
