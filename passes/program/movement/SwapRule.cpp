// Implements gOperator swapping (PowerFusion 5.1), in the forward direction only: elementwise compute moves behind the
// movement that follows it, which leaves a copy that merges. The compute must read a single element: a sum of two would
// make the movement copy both.
#include "passes/program/movement/MovementRules.h"
#include "passes/program/movement/SliceUses.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
/// The compute ops between one load and one store of a nest.
struct Elementwise {
  LoadOp load;
  SmallVector<Operation *> ops; ///< in program order
};

/// Returns the ops that compute the value of `store` from one load, if nothing else uses them; none if there are no
/// such ops or they depend on more than that load.
std::optional<Elementwise> elementwiseBefore(StoreOp store) {
  Block *body = store->getBlock();
  Elementwise found;
  llvm::SetVector<Operation *> pending;
  auto visit = [&](Value value) {
    Operation *op = value.getDefiningOp();
    bool isInside = op && op->getBlock() == body; // excludes accumulators
    if (isInside)
      pending.insert(op);
    return isInside;
  };
  if (!visit(store.getValue()))
    return std::nullopt;
  for (unsigned i = 0; i < pending.size(); ++i) {
    Operation *op = pending[i];
    if (auto load = dyn_cast<LoadOp>(op)) {
      if (found.load)
        return std::nullopt;
      found.load = load;
      continue;
    }
    if (isa<IndexOp, WithinOp>(op) || !isPure(op) || !llvm::all_of(op->getOperands(), visit))
      return std::nullopt;
    found.ops.push_back(op);
  }
  auto readElsewhere = [&](Operation *op) {
    return !op->hasTrait<OpTrait::ConstantLike>() && llvm::any_of(op->getUsers(), [&](Operation *user) {
      return user != store && !llvm::is_contained(found.ops, user);
    });
  };
  if (!found.load || found.ops.empty() || llvm::any_of(found.ops, readElsewhere))
    return std::nullopt;
  llvm::sort(found.ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return found;
}

int64_t numPoints(ComputeOp compute) { return ShapedType::getNumElements(compute.getExtents()); }

struct SwapElementwise : OpRewritePattern<StoreOp> {
  SwapElementwise(MLIRContext *context, MovementState &state) : OpRewritePattern(context), state(state) {}

  LogicalResult matchAndRewrite(StoreOp store, PatternRewriter &rewriter) const override {
    if (!state.handovers.contains(store.getSlice()))
      return rewriter.notifyMatchFailure(store, "code outside the program reads the slice");
    SliceUses uses = usesOf(store.getSlice());
    if (uses.others || uses.stores.size() != 1 || uses.loads.size() != 1)
      return rewriter.notifyMatchFailure(store, "the slice does not have exactly one store and one load");
    LoadOp load = uses.loads.front();
    auto writer = cast<ComputeOp>(store->getParentOp()), reader = cast<ComputeOp>(load->getParentOp());
    if (load.getGuard() || !comesBefore(writer, reader) || numPoints(reader) > numPoints(writer) ||
        reader.getMicroKernel() || writer.getMicroKernel())
      return rewriter.notifyMatchFailure(load, "the compute would run more often, or before its input is there");
    std::optional<Elementwise> compute = elementwiseBefore(store);
    if (!compute || compute->load.getType() != store.getValue().getType())
      return rewriter.notifyMatchFailure(store, "the stored value is not elementwise in one element of its type");

    IRMapping mapping;
    mapping.map(compute->load.getValue(), load.getValue());
    rewriter.setInsertionPointAfter(load);
    llvm::SmallPtrSet<Operation *, 8> behind;
    for (Operation *op : compute->ops)
      behind.insert(rewriter.clone(*op, mapping));
    rewriter.replaceUsesWithIf(load.getValue(), mapping.lookup(store.getValue()),
                               [&](OpOperand &use) { return !behind.contains(use.getOwner()); });
    rewriter.modifyOpInPlace(store, [&] { store.getValueMutable().assign(compute->load.getValue()); });
    for (Operation *op : llvm::reverse(compute->ops))
      if (op->use_empty())
        rewriter.eraseOp(op);
    ++state.counts.swapped;
    return success();
  }

  MovementState &state;
};
} // namespace

void tilewright::populateSwapRules(RewritePatternSet &patterns, MovementState &state) {
  patterns.add<SwapElementwise>(patterns.getContext(), state);
}
