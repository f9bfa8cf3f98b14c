// Stream-K (Osama et al., PPoPP 2023) with a grid barrier in place of flags. A workgroup stores its partial sums of a
// tile that another one begins. It waits at the barrier in its last tile, the only one that it may begin and others
// continue, and adds their partial sums in order.
#include "passes/codegen/gpu/gemm/StreamKTile.h"

#include "passes/codegen/common/EmitLoops.h"
#include "passes/codegen/gpu/gemm/SlicedAccumulators.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
/// A row of the buffer of partial sums, as accessed by the thread.
class PartialRow {
public:
  PartialRow(ContractionFrame &frame, Value partials)
      : frame(frame), partials(partials), type(cast<MemRefType>(partials.getType())), count(type.getDimSize(1)),
        run(type.getDimSize(3)), vector(VectorType::get({run}, type.getElementType())),
        thread(holders() < frame.threads ? frame.modulo(frame.thread, holders()) : frame.thread) {}

  /// Returns the condition for the thread to hold accumulators of its own, or null if every thread does. Threads beyond
  /// the holders hold duplicates.
  Value isHolder() {
    return holders() < frame.threads ? frame.isBelow(frame.thread, frame.constant(holders())) : Value();
  }

  void store(Value row, ValueRange accumulators) {
    for (int64_t i = 0; i < count; ++i) {
      Value values = vector::FromElementsOp::create(frame.builder, frame.loc, vector, accumulators.slice(i * run, run));
      auto op = vector::StoreOp::create(frame.builder, frame.loc, values, partials, place(row, i));
      op.setAlignment(run * type.getElementTypeBitWidth() / 8);
    }
  }

  SmallVector<Value> addTo(ValueRange accumulators, Value row) {
    SmallVector<Value> whole;
    for (int64_t i = 0; i < count; ++i) {
      auto op = vector::LoadOp::create(frame.builder, frame.loc, vector, partials, place(row, i));
      op.setAlignment(run * type.getElementTypeBitWidth() / 8);
      for (int64_t lane = 0; lane < run; ++lane) {
        Value part = vector::ExtractOp::create(frame.builder, frame.loc, op.getResult(), lane);
        whole.push_back(plus(frame.builder, frame.loc, accumulators[i * run + lane], part));
      }
    }
    return whole;
  }

private:
  int64_t holders() const { return type.getDimSize(2); }
  SmallVector<Value> place(Value row, int64_t i) { return {row, frame.constant(i), thread, frame.constant(0)}; }

  ContractionFrame &frame;
  Value partials;
  MemRefType type;
  int64_t count, run;
  VectorType vector;
  Value thread;
};
} // namespace

void tilewright::completeTile(ContractionFrame &frame, const StepShare &share, ValueRange accumulators,
                              llvm::function_ref<void(ArrayRef<Value>)> store) {
  OpBuilder &builder = frame.builder;
  Location loc = frame.loc;
  PartialRow row(frame, share.partials);
  Value one = arith::ConstantIntOp::create(builder, loc, 1, 1);
  Value goesOn = arith::XOrIOp::create(builder, loc, share.begins, one);
  emitIf(builder, loc, frame.both(goesOn, row.isHolder()), [&] { row.store(share.own, accumulators); });
  emitIf(builder, loc, share.isLast, [&] { share.syncGrid(builder); });
  emitIf(builder, loc, share.begins, [&] {
    Value end = share.endRow;
    if (Value holds = row.isHolder()) // threads with duplicates store nothing, so they skip the loop
      end = arith::SelectOp::create(builder, loc, holds, end, share.nextRow);
    auto loop = emitFor(builder, loc, share.nextRow, end, frame.constant(1), accumulators,
                        [&](Value other, ValueRange sums) { return row.addTo(sums, other); });
    store(SmallVector<Value>(loop.getResults()));
  });
}
