// The threads of the first K slice keep their accumulators and add those of the other slices in order, which store
// theirs to shared memory first.
#include "passes/codegen/gpu/gemm/SlicedAccumulators.h"

#include "passes/codegen/common/EmitLoops.h"
#include "passes/codegen/gpu/gemm/AccumulatorFragment.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace tilewright;

Value tilewright::firstKOf(ContractionFrame &frame, const GemmTiling &tiling) {
  if (tiling.kSlices == 1)
    return frame.constant(0);
  return frame.multiply(frame.divide(frame.thread, tiling.accumulatorThreads), tiling.ownK());
}

Value tilewright::plus(OpBuilder &builder, Location loc, Value a, Value b) {
  if (isa<FloatType>(a.getType()))
    return arith::AddFOp::create(builder, loc, a, b);
  return arith::AddIOp::create(builder, loc, a, b);
}

/// Neighbouring threads write and read neighbouring elements.
SmallVector<Value> tilewright::addUp(ContractionFrame &frame, const GemmTiling &tiling, ValueRange accumulators) {
  if (tiling.kSlices == 1)
    return SmallVector<Value>(accumulators);
  OpBuilder &builder = frame.builder;
  Location loc = frame.loc;
  int64_t count = accumulators.size();
  auto space = cast<MemRefType>(frame.scratch.getType()).getMemorySpace();
  auto type = MemRefType::get({(tiling.kSlices - 1) * count * tiling.accumulatorThreads},
                              accumulators.front().getType(), MemRefLayoutAttrInterface(), space);
  Value memory = memref::ViewOp::create(builder, loc, type, frame.scratch, frame.constant(0), ValueRange());
  Value own = frame.modulo(frame.thread, tiling.accumulatorThreads),
        unit = frame.divide(frame.thread, tiling.accumulatorThreads);
  auto place = [&](Value other, int64_t sum) {
    return frame.add(frame.multiply(frame.add(frame.multiply(other, count), sum), tiling.accumulatorThreads), own);
  };
  Value keeps = frame.isBelow(frame.thread, frame.constant(tiling.accumulatorThreads));
  {
    OpBuilder::InsertionGuard guard(builder);
    auto branch = scf::IfOp::create(builder, loc, TypeRange(), keeps, /*addThenBlock=*/true, /*addElseBlock=*/true);
    builder.setInsertionPointToEnd(branch.thenBlock());
    scf::YieldOp::create(builder, loc);
    builder.setInsertionPointToEnd(branch.elseBlock());
    Value other = arith::SubIOp::create(builder, loc, unit, frame.constant(1));
    for (auto [i, sum] : llvm::enumerate(accumulators))
      memref::StoreOp::create(builder, loc, sum, memory, place(other, i));
    scf::YieldOp::create(builder, loc);
  }
  NVVM::Barrier0Op::create(builder, loc);
  SmallVector<Value> sums = emitIf(builder, loc, keeps, accumulators, [&] {
    SmallVector<Value> whole(accumulators);
    for (int64_t other = 0; other < tiling.kSlices - 1; ++other)
      for (int64_t i = 0; i < count; ++i) {
        Value part = memref::LoadOp::create(builder, loc, memory, place(frame.constant(other), i));
        whole[i] = plus(builder, loc, whole[i], part);
      }
    return whole;
  });
  NVVM::Barrier0Op::create(builder, loc); // the next copies overwrite what was read
  return sums;
}
