// Checks the end of level 3: everything that code generation assumes of a tile program is checked here, where the ops
// still state their intent.
#include "dialects/tile/BufferOffsets.h"
#include "dialects/tile/Phases.h"
#include "passes/Passes.h"
#include "passes/program/PartBuffers.h"
#include "passes/program/RegisterHandover.h"
#include "passes/support/AffineAlgebra.h"

#include "mlir/Interfaces/LoopLikeInterface.h"

namespace tilewright {
#define GEN_PASS_DEF_VERIFYPROGRAMS
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
/// The slices that an op of a part reads and writes.
struct Touched {
  SmallVector<Value> reads, writes;
};

Touched touchedBy(Operation &op) {
  Touched touched;
  if (auto move = dyn_cast<MoveOp>(op)) {
    touched.reads.push_back(move.getSource());
    touched.writes.push_back(move.getTarget());
  } else if (auto compute = dyn_cast<ComputeOp>(op)) {
    for (Operation &inner : compute.getBodyBlock()) {
      if (auto load = dyn_cast<LoadOp>(inner))
        touched.reads.push_back(load.getSlice());
      if (auto store = dyn_cast<StoreOp>(inner))
        touched.writes.push_back(store.getSlice());
      if (auto gather = dyn_cast<GatherOp>(inner))
        touched.reads.push_back(gather.getTable());
    }
    llvm::append_range(touched.writes, compute.getAccs());
    for (auto [acc, init] : llvm::zip(compute.getAccs(), compute.getInits()))
      if (isa<UnitAttr>(init))
        touched.reads.push_back(acc);
  }
  return touched;
}

bool isBlockSlice(Value slice) { return cast<SliceType>(slice.getType()).getSpace() == Space::block; }

class PartVerifier {
public:
  PartVerifier(ProgramOp program, const ResidentBuffers &resident, ParallelOp part, unsigned phase)
      : program(program), resident(resident), part(part), phase(phase) {}

  LogicalResult verify() {
    if (failed(verifyOps(part.getBody().front())) || failed(verifyOps(part.getWalk().getBody().front())))
      return failure();
    return verifyPlaces();
  }

private:
  LogicalResult verifyOps(Block &block) {
    if (failed(verifyInOrder(block)))
      return failure();
    // The preamble is complete before the first tile.
    visible.insert(pending.begin(), pending.end());
    pending.clear();
    return success();
  }

  LogicalResult verifyInOrder(Block &block) {
    for (Operation &op : block) {
      if (auto loop = dyn_cast<LoopLikeOpInterface>(op)) {
        if (failed(verifyInOrder(loop.getLoopRegions().front()->front())))
          return failure();
        continue;
      }
      if (auto keep = dyn_cast<KeepOp>(op)) {
        if (failed(verifyInOrder(keep.getBody().front())))
          return failure();
        continue;
      }
      if (isa<SyncOp>(op)) {
        visible.insert(pending.begin(), pending.end());
        pending.clear();
        continue;
      }
      Touched touched = touchedBy(op);
      for (Value slice : touched.writes)
        if (isInput(slice))
          return op.emitError("R1: writes an input of the program");
      for (Value slice : touched.reads)
        if (isBlockSlice(slice) && !visible.contains(slice) && !isResident(slice))
          return op.emitError("R2: reads a buffer that nothing wrote before")
                 << (pending.contains(slice) ? "; a tile.sync is missing between" : "");
      if (auto compute = dyn_cast<ComputeOp>(op))
        for (auto gather : compute.getBodyBlock().getOps<GatherOp>())
          if (!isInput(gather.getTable()))
            return gather.emitError("R6: gathers from a slice that is no input of the program");
      if (auto compute = dyn_cast<ComputeOp>(op))
        if (failed(verifyBounds(compute)))
          return failure();
      pending.insert(touched.writes.begin(), touched.writes.end());
    }
    return success();
  }

  /// Returns true if an earlier phase wrote this buffer.
  bool isResident(Value slice) {
    int64_t number = residentTileNumber(slice.getDefiningOp<AllocOp>());
    return number >= 0 && program
                              .walk([&](AllocOp alloc) {
                                bool isEarlier = alloc->getParentOfType<ParallelOp>()->isBeforeInBlock(part);
                                return isEarlier && residentTileNumber(alloc) == number ? WalkResult::interrupt()
                                                                                        : WalkResult::advance();
                              })
                              .wasInterrupted();
  }

  bool isInput(Value slice) {
    auto argument = dyn_cast<BlockArgument>(slice);
    return argument && argument.getArgNumber() < program.getBody().getNumArguments() - program.getOutputs();
  }

  /// Most places at which an index is computed to know its range: a choice.
  static constexpr int64_t kMostPoints = 1 << 16;

  /// Checks that unguarded accesses to bindings stay in bounds wherever the dims stay within their extents.
  static LogicalResult verifyBounds(ComputeOp compute) {
    SmallVector<Interval> ranges = domainRanges(compute.getExtents());
    auto check = [&](Operation *op, Value slice, AffineMap map) -> LogicalResult {
      auto type = cast<SliceType>(slice.getType());
      if (type.getSpace() != Space::global)
        return success();
      for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
        auto isInside = [size = type.getShape()[dim]](Interval range) { return range.low >= 0 && range.high < size; };
        Interval range = boundExpr(expr, ranges);
        if (!isInside(range))
          range = enumeratedRange(expr, ranges, kMostPoints).value_or(range);
        if (!isInside(range))
          return op->emitError("R3: reaches [")
                 << range.low << ", " << range.high << "] along dim " << dim << " of size " << type.getShape()[dim];
      }
      return success();
    };
    for (Operation &op : compute.getBodyBlock()) {
      if (auto load = dyn_cast<LoadOp>(op); load && !load.getGuard())
        if (failed(check(load, load.getSlice(), load.getMap())))
          return failure();
      if (auto store = dyn_cast<StoreOp>(op))
        if (failed(check(store, store.getSlice(), store.getMap())))
          return failure();
    }
    return success();
  }

  /// Checks that buffers that overlap in memory are never live at the same time.
  LogicalResult verifyPlaces() {
    SmallVector<AllocOp> allocs(part.getBody().getOps<AllocOp>());
    llvm::append_range(allocs, part.getWalk().getBody().getOps<AllocOp>());
    llvm::erase_if(allocs, staysInRegisters);
    for (auto [buffers, phases] : llvm::zip(resident.ops, resident.ranges))
      if (phases.first <= phase && phase <= phases.last && !sharesNumber(buffers.front(), allocs))
        allocs.push_back(buffers.front());
    for (auto [i, a] : llvm::enumerate(allocs)) {
      if (!a.getOffset())
        return a.emitError("R4: the buffer has no offset; run tile-allocate-buffers first");
      for (AllocOp b : ArrayRef(allocs).take_front(i))
        if (!areOneTile(a, b) && overlapInMemory(a, b) && overlapInTime(a, b))
          return a.emitError("R4: overlaps a buffer that is live at the same time").attachNote(b.getLoc())
                 << "the other buffer";
    }
    return success();
  }

  static bool sharesNumber(AllocOp resident, ArrayRef<AllocOp> allocs) {
    return llvm::any_of(allocs,
                        [&](AllocOp other) { return residentTileNumber(other) == residentTileNumber(resident); });
  }

  static bool areOneTile(AllocOp a, AllocOp b) {
    return residentTileNumber(a) >= 0 && residentTileNumber(a) == residentTileNumber(b);
  }

  static bool overlapInMemory(AllocOp a, AllocOp b) {
    int64_t first = *a.getOffset(), second = *b.getOffset();
    return first < second + bufferBytes(b) && second < first + bufferBytes(a);
  }

  bool overlapInTime(AllocOp a, AllocOp b) {
    auto [firstA, lastA] = life(a);
    auto [firstB, lastB] = life(b);
    return firstA <= lastB && firstB <= lastA;
  }

  std::pair<int64_t, int64_t> life(AllocOp alloc) {
    Block &tile = part.getWalk().getBody().front();
    if (alloc->getBlock() != &tile || residentTileNumber(alloc) >= 0)
      return {0, std::numeric_limits<int64_t>::max()};
    int64_t first = std::numeric_limits<int64_t>::max(), last = -1, position = 0;
    for (Operation &op : tile) {
      ++position;
      bool used = llvm::any_of(alloc->getUsers(), [&](Operation *user) { return op.isAncestor(user); });
      if (used) {
        first = std::min(first, position);
        last = position;
      }
    }
    return {first, last};
  }

  ProgramOp program;
  const ResidentBuffers &resident;
  ParallelOp part;
  unsigned phase; ///< number of the part's phase
  llvm::DenseSet<Value> visible, pending; ///< buffers written before the last sync, and since
};

/// Checks that no part reads what another part of the phase writes, because parts of a phase do not wait for each
/// other.
LogicalResult verifyPhase(ArrayRef<ParallelOp> phase) {
  llvm::DenseMap<Value, ParallelOp> writers;
  auto each = [](ParallelOp part, llvm::function_ref<void(Operation &, const Touched &)> see) {
    part.walk([&](Operation *op) { see(*op, touchedBy(*op)); });
  };
  for (ParallelOp part : phase)
    each(part, [&](Operation &, const Touched &touched) {
      for (Value slice : touched.writes)
        writers[slice] = part;
    });
  LogicalResult result = success();
  for (ParallelOp part : phase)
    each(part, [&](Operation &op, const Touched &touched) {
      for (Value slice : touched.reads)
        if (ParallelOp writer = writers.lookup(slice); writer && writer != part && succeeded(result))
          result = op.emitError("R5: reads a binding that another part writes; a tile.sync <grid> is missing between");
    });
  return result;
}

struct VerifyPrograms : tilewright::impl::VerifyProgramsBase<VerifyPrograms> {
  void runOnOperation() override {
    markAllAnalysesPreserved();
    ResidentBuffers resident = residentBuffersOf(getOperation());
    for (auto [number, phase] : llvm::enumerate(phasesOf(getOperation()))) {
      for (ParallelOp part : phase)
        if (failed(PartVerifier(getOperation(), resident, part, number).verify()))
          return signalPassFailure();
      if (failed(verifyPhase(phase)))
        return signalPassFailure();
    }
  }
};
} // namespace
