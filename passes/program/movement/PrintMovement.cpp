// Prints the analyses of movement as remarks, one per access.
#include "passes/Passes.h"
#include "passes/program/gpu/PartWork.h"
#include "passes/program/movement/ParallelUnits.h"
#include "passes/program/movement/SlicePattern.h"

#include "llvm/Support/raw_ostream.h"

namespace tilewright {
#define GEN_PASS_DEF_PRINTMOVEMENT
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
struct PrintMovement : tilewright::impl::PrintMovementBase<PrintMovement> {
  static void remark(Operation *op, ComputeOp nest, const NestMapping &mapping, Value slice, AffineMap map,
                     AccessKind kind) {
    std::string text;
    llvm::raw_string_ostream os(text);
    if (std::optional<SlicePattern> pattern = patternOf(nest, map, cast<SliceType>(slice.getType())))
      pattern->print(os);
    else
      os << "no pattern";
    os << ", threads ";
    unitsOf(nest, mapping, map, kind).print(os);
    op->emitRemark(text);
  }

  void runOnOperation() override {
    int64_t threads = threadsOf(getOperation());
    getOperation().walk([&](ComputeOp nest) {
      NestMapping mapping = mapNest(nest, {threads, blockShapeOf(nest->getParentOfType<ParallelOp>()).group});
      for (Operation &op : nest.getBodyBlock()) {
        if (auto load = dyn_cast<LoadOp>(op))
          remark(load, nest, mapping, load.getSlice(), load.getMap(), AccessKind::load);
        if (auto store = dyn_cast<StoreOp>(op))
          remark(store, nest, mapping, store.getSlice(), store.getMap(), AccessKind::store);
      }
      for (auto [slice, map] : llvm::zip(nest.getAccs(), nest.getAccMaps().getAsValueRange<AffineMapAttr>()))
        remark(nest, nest, mapping, slice, map, AccessKind::accumulator);
    });
  }
};
} // namespace
