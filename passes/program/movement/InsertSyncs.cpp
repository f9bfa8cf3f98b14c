// Implements synchronization insertion inside a tile (PowerFusion 5.1). planSyncs() decides where threads synchronise
// and at which scope; this pass replaces the existing syncs by those. Synchronisation between phases is the task of
// tile-rewrite-movement.
#include "passes/Passes.h"
#include "passes/program/gpu/PartWork.h"
#include "passes/program/movement/Handovers.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Remarks.h"

namespace tilewright {
#define GEN_PASS_DEF_INSERTSYNCS
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
struct InsertSyncs : tilewright::impl::InsertSyncsBase<InsertSyncs> {
  void carryOut(ParallelOp part, const SyncPlan &plan) {
    Block &tile = part.getWalk().getBody().front();
    SmallVector<Operation *> ops;
    for (Operation &op : llvm::make_early_inc_range(tile)) {
      auto sync = dyn_cast<SyncOp>(op);
      if (!sync)
        ops.push_back(&op);
      else if (sync.getScope() <= Scope::block) // syncs between blocks are out of scope here
        op.erase();
    }
    OpBuilder builder(&getContext());
    for (const PlacedSync &sync : plan.syncs) {
      if (sync.before < ops.size())
        builder.setInsertionPoint(ops[sync.before]);
      else
        builder.setInsertionPointToEnd(&tile);
      SyncOp::create(builder, part.getLoc(), sync.scope);
      ++*(sync.scope == Scope::thread ? &numThread : sync.scope == Scope::warp ? &numWarp : &numBlock);
    }
  }

  void runOnOperation() override {
    int64_t threads = threadsOf(getOperation());
    for (auto part : getOperation().getBody().getOps<ParallelOp>()) {
      OrDeclined<SyncPlan> plan = planSyncs(part, {threads, blockShapeOf(part).group});
      if (plan) {
        carryOut(part, *plan);
        continue;
      }
      remark::missed(part.getLoc(), remark::RemarkOpts::name("sync").category("tile-insert-syncs"))
          << ("tile: the pass keeps the syncs of this part as they are: " + plan.why().reason);
      ++numLeft;
    }
  }
};
} // namespace
