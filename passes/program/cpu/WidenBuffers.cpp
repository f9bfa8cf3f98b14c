// Widens buffers of bf16 and f16 to f32. Arithmetic is in f32, so a narrow buffer is converted every time it is read:
// by several nests, or again for each row. A wide one is converted once, by its writer, which rounds as before.
#include "dialects/tile/TargetOf.h"
#include "dialects/tile/TileDialect.h"
#include "passes/Passes.h"
#include "passes/graph/MatchContraction.h"
#include "passes/program/RegisterHandover.h"
#include "passes/program/Slices.h"
#include "passes/target/TargetOrError.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace tilewright {
#define GEN_PASS_DEF_WIDENBUFFERS
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
bool isNarrow(SliceType type) { return type.getElementType().isBF16() || type.getElementType().isF16(); }

SliceType widened(SliceType type) {
  return SliceType::get(type.getContext(), type.getShape(), Float32Type::get(type.getContext()), type.getSpace());
}

/// Returns true if the loaded element is only used for arithmetic in f32. Micro kernels take narrow operands directly.
bool isConverted(LoadOp load) {
  auto nest = dyn_cast<ComputeOp>(load->getParentOp());
  return nest && !load.getGuard() && !nest.getMicroKernel() && !matchContraction(nest) &&
         llvm::all_of(load->getUsers(),
                      [](Operation *user) { return isa<arith::ExtFOp>(user) && user->getResult(0).getType().isF32(); });
}

/// Returns true if the store belongs to a copy that transposes, which is done in registers for a single element type.
bool turns(StoreOp store) {
  auto load = store.getValue().getDefiningOp<LoadOp>();
  return load && innermostDim(load.getSlice().getType(), load.getMap()) !=
                     innermostDim(store.getSlice().getType(), store.getMap());
}

bool isWidenable(AllocOp buffer) {
  bool isRead = false;
  for (Operation *user : buffer->getUsers()) {
    auto load = dyn_cast<LoadOp>(user);
    auto store = dyn_cast<StoreOp>(user);
    auto move = dyn_cast<MoveOp>(user);
    if (!(load && isConverted(load)) && !(store && !turns(store)) && !(move && move.getTarget() == buffer.getSlice()))
      return false;
    isRead |= load != nullptr;
  }
  return isRead && isNarrow(buffer.getType()) && !staysInRegisters(buffer);
}

/// Returns the buffers that, widened, still fit into L1 with all others. If results are streamed, TilePipeline needs
/// the buffers of a tile twice, within half of L1.
SmallVector<AllocOp> decide(ParallelOp part, int64_t l1Bytes) {
  SmallVector<AllocOp> buffers, chosen;
  part.walk([&](AllocOp buffer) { buffers.push_back(buffer); });
  bool streams =
      part.walk([](StoreOp store) { return store.getStreamed() ? WalkResult::interrupt() : WalkResult::advance(); })
          .wasInterrupted();
  int64_t left = streams ? l1Bytes / 4 : l1Bytes;
  for (AllocOp buffer : buffers)
    left -= buffer.getType().getNumBytes();
  for (AllocOp buffer : buffers) {
    int64_t more = widened(buffer.getType()).getNumBytes() - buffer.getType().getNumBytes();
    if (more > left || !isWidenable(buffer))
      continue;
    left -= more;
    chosen.push_back(buffer);
  }
  return chosen;
}

void widenAccess(LoadOp load) {
  load.getResult().setType(Float32Type::get(load.getContext()));
  for (Operation *user : llvm::make_early_inc_range(load->getUsers())) {
    user->getResult(0).replaceAllUsesWith(load);
    user->erase();
  }
}

void widenAccess(StoreOp store) {
  OpBuilder builder(store);
  Value wide = arith::ExtFOp::create(builder, store.getLoc(), builder.getF32Type(), store.getValue());
  store.getValueMutable().assign(wide);
}

void widen(AllocOp buffer) {
  buffer.getResult().setType(widened(buffer.getType()));
  for (Operation *user : llvm::make_early_inc_range(buffer->getUsers())) {
    if (auto load = dyn_cast<LoadOp>(user)) {
      widenAccess(load);
    } else if (auto store = dyn_cast<StoreOp>(user)) {
      widenAccess(store);
    } else {
      copyNest(cast<MoveOp>(user));
      user->erase();
    }
  }
}

struct WidenBuffers : tilewright::impl::WidenBuffersBase<WidenBuffers> {
  using WidenBuffersBase::WidenBuffersBase;

  void runOnOperation() override {
    FailureOr<Target> known = targetOrError(getOperation(), targetOf(getOperation(), target));
    if (failed(known))
      return signalPassFailure();
    for (auto part : getOperation().getBody().getOps<ParallelOp>())
      for (AllocOp buffer : decide(part, known->levels.front().capacityBytes)) {
        widen(buffer);
        ++widenedBuffers;
      }
  }
};
} // namespace
