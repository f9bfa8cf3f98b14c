// Records in order where a kernel reads and writes its bindings and its workgroup's memory. The trace is one more
// binding. It holds the number of accesses, the number of records that fit, and the records, with room for one more.
// Accesses that do not fit are still counted, so that a run without room tells how much another run needs. The accesses
// are those of the plain build. Later spills of LLVM to the stack, and loads that it removes, do not show.
#include "passes/Passes.h"
#include "passes/codegen/cpu/MemoryAccess.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace tilewright {
#define GEN_PASS_DEF_TRACEACCESSES
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {
constexpr int64_t kRecords = 2;            ///< index of the first record
constexpr int64_t kUnbounded = 1LL << 40;  ///< elements in the type of the trace; the caller knows the real number
constexpr int64_t kAddressShift = 1 << 16; ///< a record is the address, 15 bits of bytes, and a bit for stores

class Tracer {
public:
  Tracer(OpBuilder &builder, Location loc, Value trace) : builder(builder), loc(loc), trace(trace) {}

  void add(const MemoryAccess &access) {
    Value address = addressOf(access);
    int64_t size = access.elementBytes();
    if (!access.offsets)
      return append(address, access.mask ? maskedBytes(access) : constant(access.lanes * size), access.isStore);
    // Each lane of a gather or scatter is an access of its own. A lane that is masked off has zero bytes.
    for (int64_t lane = 0; lane < access.lanes; ++lane) {
      Value offset = vector::ExtractOp::create(builder, loc, access.offsets, lane);
      if (!offset.getType().isIndex())
        offset = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), offset);
      Value active = vector::ExtractOp::create(builder, loc, access.mask, lane);
      Value bytes = arith::SelectOp::create(builder, loc, active, constant(size), constant(0));
      append(arith::AddIOp::create(builder, loc, address, scaled(offset, size)), bytes, access.isStore);
    }
  }

private:
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
  Value scaled(Value value, int64_t by) { return arith::MulIOp::create(builder, loc, value, constant(by)); }

  Value addressOf(const MemoryAccess &access) {
    auto type = cast<MemRefType>(access.memory.getType());
    Value address = memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, access.memory);
    int64_t stride = access.elementBytes();
    for (auto [index, size] : llvm::reverse(llvm::zip_equal(access.indices, type.getShape()))) {
      address = arith::AddIOp::create(builder, loc, address, scaled(index, stride));
      stride *= size;
    }
    return address;
  }

  /// Returns the bytes of a masked access to neighbours, whose mask covers the first lanes.
  Value maskedBytes(const MemoryAccess &access) {
    Value lanes =
        arith::ExtUIOp::create(builder, loc, VectorType::get({access.lanes}, builder.getI64Type()), access.mask);
    Value active = vector::ReductionOp::create(builder, loc, vector::CombiningKind::ADD, lanes);
    return scaled(arith::IndexCastOp::create(builder, loc, builder.getIndexType(), active), access.elementBytes());
  }

  void append(Value address, Value bytes, bool isStore) {
    Value record = arith::AddIOp::create(builder, loc, scaled(address, kAddressShift), scaled(bytes, 2));
    if (isStore)
      record = arith::AddIOp::create(builder, loc, record, constant(1));
    Value used = memref::LoadOp::create(builder, loc, trace, constant(0));
    Value room = memref::LoadOp::create(builder, loc, trace, constant(1));
    Value slot =
        arith::AddIOp::create(builder, loc, arith::MinUIOp::create(builder, loc, used, room), constant(kRecords));
    memref::StoreOp::create(builder, loc, record, trace, slot);
    memref::StoreOp::create(builder, loc, arith::AddIOp::create(builder, loc, used, constant(1)), trace, constant(0));
  }

  OpBuilder &builder;
  Location loc;
  Value trace;
};

struct TraceAccesses : tilewright::impl::TraceAccessesBase<TraceAccesses> {
  void runOnOperation() override {
    auto trace = MemRefType::get({kUnbounded}, IndexType::get(&getContext()));
    auto instrument = [](OpBuilder &builder, const MemoryAccess &access, BlockArgument argument) {
      Tracer(builder, access.op->getLoc(), argument).add(access);
    };
    if (failed(instrumentAccesses(getOperation(), trace, instrument)))
      signalPassFailure();
  }
};
} // namespace
