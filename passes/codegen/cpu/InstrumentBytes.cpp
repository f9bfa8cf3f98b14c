// Counts the bytes that a kernel really moves, for tests and benchmarks. Every access to a binding adds its bytes to
// one of two counters, for loads or for stores. The counters are one more binding, after the kernel's own. The accesses
// themselves are those of the plain build.
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
void count(OpBuilder &builder, const MemoryAccess &access, Value counters) {
  Location loc = access.op->getLoc();
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

/// Returns true for a binding. Bindings are the arguments in front of the counters.
bool isBinding(Value memory, BlockArgument counters) {
  auto argument = dyn_cast<BlockArgument>(memory);
  return argument && argument.getOwner() == counters.getOwner() && argument.getArgNumber() < counters.getArgNumber();
}

struct InstrumentBytes : tilewright::impl::InstrumentBytesBase<InstrumentBytes> {
  void runOnOperation() override {
    auto counters = MemRefType::get({2}, IntegerType::get(&getContext(), 64));
    auto instrument = [](OpBuilder &builder, const MemoryAccess &access, BlockArgument argument) {
      if (isBinding(access.memory, argument))
        count(builder, access, argument);
    };
    if (failed(instrumentAccesses(getOperation(), counters, instrument)))
      signalPassFailure();
  }
};
} // namespace
