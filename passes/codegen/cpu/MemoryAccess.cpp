#include "passes/codegen/cpu/MemoryAccess.h"

#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/codegen/cpu/TileGate.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tilewright;

int64_t MemoryAccess::elementBytes() const {
  return llvm::divideCeil(cast<MemRefType>(memory.getType()).getElementTypeBitWidth(), 8);
}

std::optional<MemoryAccess> tilewright::memoryAccessOf(Operation *op) {
  auto lanesOf = [](Type type) { return cast<VectorType>(type).getNumElements(); };
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return MemoryAccess{op, load.getMemRef(), {}, {}, load.getIndices(), 1, false};
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return MemoryAccess{op, store.getMemRef(), {}, {}, store.getIndices(), 1, true};
  if (auto load = dyn_cast<vector::LoadOp>(op))
    return MemoryAccess{op, load.getBase(), {}, {}, load.getIndices(), lanesOf(load.getType()), false};
  if (auto store = dyn_cast<vector::StoreOp>(op))
    return MemoryAccess{op,
                        store.getBase(),
                        {},
                        {},
                        store.getIndices(),
                        lanesOf(store.getValueToStore().getType()),
                        /*isStore=*/true};
  if (auto load = dyn_cast<vector::MaskedLoadOp>(op))
    return MemoryAccess{op, load.getBase(), load.getMask(), {}, load.getIndices(), lanesOf(load.getType()), false};
  if (auto store = dyn_cast<vector::MaskedStoreOp>(op))
    return MemoryAccess{op,
                        store.getBase(),
                        store.getMask(),
                        {},
                        store.getIndices(),
                        lanesOf(store.getValueToStore().getType()),
                        /*isStore=*/true};
  if (auto gather = dyn_cast<vector::GatherOp>(op))
    return MemoryAccess{
        op,   gather.getBase(), gather.getMask(), gather.getIndices(), gather.getOffsets(), lanesOf(gather.getType()),
        false};
  if (auto scatter = dyn_cast<vector::ScatterOp>(op))
    return MemoryAccess{op,
                        scatter.getBase(),
                        scatter.getMask(),
                        scatter.getIndices(),
                        scatter.getOffsets(),
                        lanesOf(scatter.getValueToStore().getType()),
                        /*isStore=*/true};
  return std::nullopt;
}

LogicalResult
tilewright::instrumentAccesses(func::FuncOp kernel, MemRefType record,
                               function_ref<void(OpBuilder &, const MemoryAccess &, BlockArgument)> instrument) {
  if (!kernel->hasAttr(kWorkgroupsAttr) || kernel.isExternal())
    return success();
  if (usesTileRegisters(kernel))
    return kernel.emitError("loads and stores of tile registers are not recorded; use a target without AMX");
  SmallVector<MemoryAccess> accesses;
  kernel.walk([&](Operation *op) {
    if (std::optional<MemoryAccess> access = memoryAccessOf(op))
      accesses.push_back(*access);
  });
  unsigned behindBindings = kernel.getNumArguments() - 2;
  OpBuilder builder(kernel);
  if (failed(kernel.insertArgument(behindBindings, record, builder.getDictionaryAttr({}), kernel.getLoc())))
    return failure();
  for (const MemoryAccess &access : accesses) {
    builder.setInsertionPoint(access.op);
    instrument(builder, access, kernel.getArgument(behindBindings));
  }
  return success();
}
