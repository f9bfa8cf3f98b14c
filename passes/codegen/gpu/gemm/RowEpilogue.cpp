// Emits the body of the nest once per run of neighbouring accumulators, with the nest's own accumulators carried from
// run to run of a row. Afterwards BlockThreads combines the rows of all threads that share them.
#include "passes/codegen/gpu/gemm/RowEpilogue.h"

#include "passes/codegen/common/NestEmitter.h"
#include "passes/codegen/common/EmitLoops.h"
#include "passes/codegen/gpu/gemm/Epilogue.h"
#include "passes/codegen/gpu/gemm/FragmentExchange.h"
#include "passes/codegen/gpu/nest/BlockThreads.h"
#include "passes/target/Warpgroups.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <map>

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
class RowEpilogue {
public:
  RowEpilogue(OpBuilder &builder, HeldAccumulators &held, const EpilogueNest &reader, const IRMapping &values,
              Value thread, int64_t threads)
      : held(held), plan(held.contraction.plan), compute(held.contraction.compute), nest(reader.nest), builder(builder),
        loc(nest.getLoc()), thread(thread),
        frame(builder, compute, values, thread, threads, held.contraction.scratch, *held.contraction.costs),
        body(frame, reader, plan.contraction.n), count(together()) {}

  void emit() {
    std::map<int64_t, SmallVector<size_t>> runs; // for each row: indices at which its runs begin
    for (size_t first = 0; first < held.layout.offsets.size(); first += count)
      runs[held.layout.offsets[first].m].push_back(first);
    unsigned accumulators = nest.getAccs().size();
    std::vector<SmallVector<Value>> ofThread(accumulators); // one value per row
    for (auto &[row, own] : runs) {
      SmallVector<Value> values = emitRow(row, own);
      for (unsigned i = 0; i < accumulators; ++i)
        ofThread[i].push_back(alongRun(i, values[i]));
    }
    for (unsigned i = 0; i < accumulators; ++i)
      store(i, combine(i, ofThread[i]), runs);
  }

private:
  /// Returns how many neighbouring accumulators are processed at once, such that a tile has whole runs of them.
  int64_t together() {
    int64_t n = plan.contraction.n, most = held.layout.run;
    while (compute.getSizes()[n] % most != 0 || compute.getExtents()[n] % most != 0)
      most /= 2;
    return most;
  }

  /// Returns the combining kind. Nests that combine in a fixed order are not handed registers (reducesRows).
  vector::CombiningKind kindOf(unsigned i) {
    return *vector::symbolizeCombiningKind(cast<StringAttr>(nest.getKinds()[i]).getValue());
  }

  /// Returns a value, or a vector of as many as are processed at once, with all elements equal to `element`.
  Value filled(TypedAttr element) {
    Value one = arith::ConstantOp::create(builder, loc, element);
    return count == 1 ? one : vector::BroadcastOp::create(builder, loc, VectorType::get({count}, one.getType()), one);
  }

  SmallVector<Value> neutral() {
    SmallVector<Value> values;
    for (BlockArgument accumulator : nest.getBodyBlock().getArguments())
      values.push_back(filled(neutralElement(kindOf(accumulator.getArgNumber()), accumulator.getType())));
    return values;
  }

  /// Moves to the row. Returns the condition for the thread to have it, or null if every thread does.
  Value enter(int64_t row) {
    Value place = frame.add(held.layout.firstM, row), valid = hasSums();
    if (plan.contraction.m < 0)
      return plan.tiling.m > 1 ? frame.both(valid, frame.isBelow(place, frame.constant(1))) : valid;
    return frame.both(valid, enter(plan.contraction.m, place, plan.tiling.m));
  }

  Value enter(int64_t dim, Value inTile, int64_t points) {
    frame.indices[dim] = frame.add(frame.offsets[dim], inTile);
    return frame.isWhole(dim, points) ? Value() : frame.isBelow(frame.indices[dim], frame.ends[dim]);
  }

  /// Returns the condition for the thread to take part: one of the threads that hold the same accumulators does. Null
  /// if no two threads hold the same.
  Value hasSums() {
    int64_t busy = plan.tiling.mUnits * plan.tiling.nUnits * threadsOfStep(plan.kernel);
    return busy < frame.threads ? frame.isBelow(frame.thread, frame.constant(busy)) : Value();
  }

  /// Emits a row and returns its accumulators. Values that the nest stores to tiles in registers are carried along with
  /// them, run by run.
  SmallVector<Value> emitRow(int64_t row, ArrayRef<size_t> runs) {
    SmallVector<Value> carried = neutral();
    for (size_t first : runs)
      for (auto &[slice, tile] : held.tiles)
        if (isStored(slice))
          carried.push_back(together(slice, first));
    size_t accumulators = nest.getAccs().size(), stored = (carried.size() - accumulators) / runs.size();
    carried = emitIf(builder, loc, enter(row), carried, [&] {
      frame.indices[plan.contraction.n] = frame.offsets[plan.contraction.n];
      body.enterRow();
      SmallVector<Value> now = carried;
      for (auto [i, first] : llvm::enumerate(runs)) {
        SmallVector<Value> own(ArrayRef(now).take_front(accumulators));
        llvm::append_range(own, ArrayRef(now).slice(accumulators + i * stored, stored));
        own = emitRun(first, own);
        llvm::copy(ArrayRef(own).take_front(accumulators), now.begin());
        llvm::copy(ArrayRef(own).drop_front(accumulators), now.begin() + accumulators + i * stored);
      }
      return now;
    });
    for (auto [i, first] : llvm::enumerate(runs)) {
      size_t next = accumulators + i * stored;
      for (auto &[slice, tile] : held.tiles)
        if (isStored(slice))
          takeApart(carried[next++], tile, first);
    }
    carried.truncate(accumulators);
    return carried;
  }

  /// Emits a run if it is in the tile, and returns the accumulators and the values stored to tiles.
  SmallVector<Value> emitRun(size_t first, ArrayRef<Value> before) {
    Value place = frame.add(held.layout.firstN, held.layout.offsets[first].n);
    return emitIf(builder, loc, enter(plan.contraction.n, place, plan.tiling.n), before, [&] {
      SliceValues registers;
      for (auto &[slice, tile] : held.tiles)
        registers[slice] = together(slice, first);
      SmallVector<Value> after = body.emit(registers, before.take_front(nest.getAccs().size()));
      for (auto &[slice, value] : registers)
        if (isStored(slice))
          after.push_back(value);
      return after;
    });
  }

  bool isStored(Value slice) {
    return llvm::any_of(nest.getBodyBlock().getOps<StoreOp>(),
                        [&](StoreOp store) { return store.getSlice() == slice; });
  }

  /// Returns a run of a tile in the form in which nests read it.
  Value together(Value slice, size_t first) {
    Type stored = cast<SliceType>(slice.getType()).getElementType();
    ArrayRef<Value> run = ArrayRef(held.tiles[slice]).slice(first, count);
    SmallVector<Value> elements = llvm::map_to_vector(run, [&](Value sum) -> Value {
      return stored == sum.getType() ? sum : arith::TruncFOp::create(builder, loc, stored, sum).getResult();
    });
    return count == 1 ? elements.front()
                      : vector::FromElementsOp::create(builder, loc, VectorType::get({count}, stored), elements);
  }

  void takeApart(Value run, MutableArrayRef<Value> tile, size_t first) {
    for (int64_t i = 0; i < count; ++i)
      tile[first + i] = count == 1 ? run : vector::ExtractOp::create(builder, loc, run, i).getResult();
  }

  Value alongRun(unsigned i, Value value) {
    if (count == 1)
      return value;
    Value all;
    for (int64_t element = 0; element < count; ++element) {
      Value own = vector::ExtractOp::create(builder, loc, value, element);
      all = all ? vector::makeArithReduction(builder, loc, kindOf(i), all, own) : own;
    }
    return all;
  }

  /// Returns the part of the contraction's scratch that is free while its accumulators are read.
  Value freeScratch() {
    auto all = cast<MemRefType>(frame.scratch.getType());
    int64_t resident = plan.tiling.residentSteps > 0 ? plan.tiling.lhsBytes() : 0;
    auto type = MemRefType::get({all.getNumElements() - resident}, all.getElementType(), MemRefLayoutAttrInterface(),
                                all.getMemorySpace());
    return memref::ViewOp::create(builder, loc, type, frame.scratch, frame.constant(resident), ValueRange());
  }

  /// Combines all rows of the thread at once with the other threads that hold accumulators of these rows.
  Value combine(unsigned i, ArrayRef<Value> ofThread) {
    auto type = VectorType::get({static_cast<int64_t>(ofThread.size())}, ofThread.front().getType());
    NestMapping mapping;
    mapping.threads = frame.threads;
    mapping.reduced = held.layout.rowBits;
    Value all = vector::FromElementsOp::create(builder, loc, type, ofThread);
    all = BlockThreads(nest, mapping, thread, freeScratch(), frame.costs).combine(builder, i, kindOf(i), all);
    Value init = arith::ConstantOp::create(builder, loc, cast<TypedAttr>(nest.getInits()[i]));
    return vector::makeArithReduction(builder, loc, kindOf(i), all,
                                      vector::BroadcastOp::create(builder, loc, type, init));
  }

  /// Stores the result from one of the threads that share a row.
  void store(unsigned i, Value all, const std::map<int64_t, SmallVector<size_t>> &rows) {
    Value shared = arith::AndIOp::create(builder, loc, thread,
                                         arith::ConstantIntOp::create(builder, loc, held.layout.rowBits, 32));
    Value leads = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, shared,
                                        arith::ConstantIntOp::create(builder, loc, 0, 32));
    int64_t place = 0;
    for (int64_t row : llvm::make_first_range(rows)) {
      emitIf(builder, loc, frame.both(leads, enter(row)),
             [&] { body.storeAccumulator(i, vector::ExtractOp::create(builder, loc, all, place)); });
      ++place;
    }
  }

  HeldAccumulators &held;
  const ContractionPlan &plan;
  ComputeOp compute, nest;
  OpBuilder &builder;
  Location loc;
  Value thread;
  ContractionFrame frame;
  Epilogue body;
  int64_t count;
};
} // namespace

/// Returns the accumulators with longer runs, limited to tiles that the nest reads or that no later nest reads.
static HeldAccumulators inLongerRuns(ContractionFrame &frame, const HeldAccumulators &held,
                                     const EpilogueNest &reader) {
  HeldAccumulators longer{held.contraction, withLongerRuns(frame, held.layout), {}};
  auto take = [&](Value slice) {
    if (auto tile = held.tiles.find(slice); tile != held.tiles.end() && !longer.tiles.contains(slice))
      longer.tiles[slice] = exchangePairs(frame, held.layout, tile->second);
  };
  ComputeOp(reader.nest).walk([&](LoadOp load) { take(load.getSlice()); });
  ComputeOp(reader.nest).walk([&](StoreOp store) { take(store.getSlice()); });
  return longer;
}

/// Returns true if a nest behind this one may read what it stores to a held tile.
static bool leavesHeld(const HeldAccumulators &held, ComputeOp nest) {
  auto isBehind = [&](Operation *user) {
    Operation *reader = nest->getBlock()->findAncestorOpInBlock(*user);
    return isa<LoadOp>(user) && (!reader || nest->isBeforeInBlock(reader));
  };
  bool isInLoop = isa<scf::ForOp>(nest->getParentOp());
  return llvm::any_of(nest.getBodyBlock().getOps<StoreOp>(), [&](StoreOp store) {
    Value slice = store.getSlice();
    return held.tiles.contains(slice) && (isInLoop || llvm::any_of(slice.getUsers(), isBehind));
  });
}

void tilewright::emitEpilogueNest(OpBuilder &builder, HeldAccumulators &held, const EpilogueNest &reader,
                                  const IRMapping &values, Value thread, int64_t threads) {
  const PlacedContraction &contraction = held.contraction;
  if (!leavesHeld(held, reader.nest) &&
      gainsByLongerRuns(contraction.plan, contraction.compute, held.layout, &reader)) {
    ContractionFrame frame(builder, contraction.compute, values, thread, threads, contraction.scratch,
                           *contraction.costs);
    HeldAccumulators longer = inLongerRuns(frame, held, reader);
    return RowEpilogue(builder, longer, reader, values, thread, threads).emit();
  }
  RowEpilogue(builder, held, reader, values, thread, threads).emit();
}
