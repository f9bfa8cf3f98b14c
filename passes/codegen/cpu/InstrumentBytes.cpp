// Counts what a kernel really moves: after every access to a binding, the bytes it touched are added to one of two
// counters, loads and stores. The counters are one more binding, after the kernel's own. For tests and benchmarks; the
// accesses themselves are those of the plain build.
#include "passes/Passes.h"
#include "passes/codegen/cpu/MemoryAccess.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace tilewright {
#define GEN_PASS_DEF_INSTRUMENTBYTES
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {
void count(OpBuilder &builder, Operation *op, const MemoryAccess &access, Value counters) {
  Location loc = op->getLoc();
  builder.setInsertionPointAfter(op);
  Type i64 = builder.getI64Type();
  int64_t elementBytes = access.elementBytes();
  Value bytes;
  if (access.mask) {
    Value lanes = arith::ExtUIOp::create(builder, loc, VectorType::get({access.lanes}, i64), access.mask);
    Value active = vector::ReductionOp::create(builder, loc, vector::CombiningKind::ADD, lanes);
    bytes = arith::MulIOp::create(builder, loc, active, arith::ConstantIntOp::create(builder, loc, i64, elementBytes));
  } else {
    bytes = arith::ConstantIntOp::create(builder, loc, i64, access.lanes * elementBytes);
  }
  Value slot = arith::ConstantIndexOp::create(builder, loc, access.isStore);
  Value before = memref::LoadOp::create(builder, loc, counters, slot);
  memref::StoreOp::create(builder, loc, arith::AddIOp::create(builder, loc, before, bytes), counters, slot);
}

struct InstrumentBytes : tilewright::impl::InstrumentBytesBase<InstrumentBytes> {
  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (!kernel->hasAttr(kWorkgroupsAttr) || kernel.isExternal())
      return;
    unsigned numBindings = kernel.getNumArguments() - 2;
    OpBuilder builder(kernel);
    SmallVector<std::pair<Operation *, MemoryAccess>> accesses;
    kernel.walk([&](Operation *op) {
      std::optional<MemoryAccess> access = memoryAccessOf(op);
      auto argument = access ? dyn_cast<BlockArgument>(access->memory) : BlockArgument();
      if (argument && argument.getOwner() == &kernel.getBody().front() && argument.getArgNumber() < numBindings)
        accesses.push_back({op, *access});
    });
    auto type = MemRefType::get({2}, builder.getI64Type());
    if (failed(kernel.insertArgument(numBindings, type, builder.getDictionaryAttr({}), kernel.getLoc())))
      return signalPassFailure();
    for (auto &[op, access] : accesses)
      count(builder, op, access, kernel.getArgument(numBindings));
  }
};
} // namespace
