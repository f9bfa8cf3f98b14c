// Multiplies the steps along K in a software pipeline over slots of shared memory, adds up the accumulators of K
// slices, and then stores them, runs the epilogue on them, or returns them for nests that read rows.
#include "passes/codegen/gpu/gemm/ContractionBlock.h"

#include "passes/codegen/common/EmitLoops.h"
#include "passes/codegen/gpu/gemm/AccumulatorFragment.h"
#include "passes/codegen/gpu/gemm/Epilogue.h"
#include "passes/codegen/gpu/gemm/FragmentExchange.h"
#include "passes/codegen/gpu/gemm/SlicedAccumulators.h"
#include "passes/target/AccessBytes.h"
#include "passes/graph/SwizzledLayout.h"
#include "passes/program/Slices.h"
#include "passes/program/gpu/Prefetch.h"
#include "passes/target/Warpgroups.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
/// The operands of a contraction, which pass through shared memory step by step.
struct StepOperands {
  StepOperands(OpBuilder &builder, const PlacedContraction &contraction, const IRMapping &values, Value thread,
               int64_t threads)
      : plan(contraction.plan),
        frame(builder, contraction.compute, values, thread, threads, contraction.scratch, *contraction.costs),
        lhs(frame, plan.contraction.lhs, lhsShape(plan)), rhs(frame, plan.contraction.rhs, rhsShape(plan)),
        ahead(prefetchOf(contraction.compute)), firstOfLoop(contraction.firstOfLoop), firstStep(contraction.firstStep) {
    const GemmTiling &tiling = plan.tiling;
    lhs.setOffset(0, tiling.lhsSlotBytes, tiling.residentSteps > 0 ? tiling.residentSteps : tiling.stages);
    if (tiling.residentSteps > 0)
      lhs.keepSteps();
    rhs.setOffset(firstStep ? contraction.residentRhs : tiling.lhsBytes(), tiling.rhsSlotBytes,
                  firstStep ? stepsOf(contraction.compute, plan) : tiling.stages);
    if (firstStep)
      rhs.keepSteps();
    rhs.setBarrierOffset(tiling.slotBytes(), tiling.stages);
    steps = contraction.share ? contraction.share->count : frame.constant(stepsOf(contraction.compute, plan));
    if (contraction.share)
      frame.offsets[plan.k] = frame.add(frame.offsets[plan.k], frame.multiply(contraction.share->first, tiling.step));
    for (ContractionOperand *operand : {&lhs, &rhs}) {
      if (tiling.kSlices > 1)
        operand->spreadUnits(tiling.ownK());
      if (isOfWarpgroup(plan.kernel))
        operand->cutIntoPanels();
      else if (plan.kernel.unit == StepUnit::warp && !operand->liesAlongK())
        operand->spreadForWords();
    }
  }

  void copy(Value slot, Value step) { copy(slot, step, /*ofLhs=*/true, /*ofRhs=*/true); }
  /// Copies the operands that are prefetched (copyPrefetched), and those that are not (copyRest).
  void copyPrefetched(Value slot, Value step) { copy(slot, step, ahead.lhs, ahead.rhs); }
  void copyRest(Value slot, Value step) { copy(slot, step, !ahead.lhs, !ahead.rhs); }
  std::unique_ptr<AccumulatorFragment> makeFragment() {
    const Contraction &roles = plan.contraction;
    Type sum = frame.compute.getBodyBlock().getArgument(0).getType();
    return tilewright::makeFragment(
        {frame, lhs, rhs, plan.tiling, plan.kernel, roles.lhsWidening, roles.rhsWidening, sum});
  }
  /// Returns true if operands that are not prefetched are copied asynchronously in every iteration of the loop around.
  /// If `again`, the copies made only in the first iteration are not counted, because they are committed with those
  /// that replace a missing prefetch.
  bool restIsAsync(bool again) {
    bool inFirst = plan.tiling.residentSteps > 0 && again;
    return (lhs.isAsync() && !ahead.lhs && !inFirst) || (rhs.isAsync() && !ahead.rhs);
  }

  const ContractionPlan &plan;
  ContractionFrame frame;
  ContractionOperand lhs, rhs;
  Prefetch ahead;
  Value steps;       ///< number of steps that the workgroup multiplies
  Value firstOfLoop, firstStep; ///< conditions to copy the M, or N, operand if it stays resident; null if it does not

private:
  /// Copies a step of an operand. One that stays resident has a slot for each step, and is copied only if `isNew`.
  void copyIfNew(ContractionOperand &operand, Value isNew, Value slot, Value step, Value first) {
    emitIf(frame.builder, frame.loc, isNew, [&] { operand.copy(isNew ? step : slot, first); });
  }

  void copy(Value slot, Value step, bool ofLhs, bool ofRhs) {
    Value first = frame.add(frame.offsets[plan.k], frame.multiply(step, plan.tiling.step));
    ofLhs ? copyIfNew(lhs, firstOfLoop, slot, step, first) : void();
    ofRhs ? copyIfNew(rhs, firstStep, slot, step, first) : void();
  }
};

class BlockEmitter {
public:
  BlockEmitter(OpBuilder &builder, const PlacedContraction &contraction, const UpcomingContraction *next,
               const IRMapping &values, Value thread, int64_t threads)
      : contraction(contraction), operands(builder, contraction, values, thread, threads), again(contraction.again),
        frame(operands.frame), builder(builder), compute(contraction.compute), plan(contraction.plan),
        loc(compute.getLoc()), sum(compute.getBodyBlock().getArgument(0).getType()), lhs(operands.lhs),
        rhs(operands.rhs) {
    if (next) {
      this->next.emplace(builder, next->placed, next->values, thread, threads);
      nextExists = next->exists;
    }
  }

  std::optional<HeldAccumulators> emit() {
    share = operands.makeFragment();
    SmallVector<int64_t> outer;
    for (int64_t dim : plan.contraction.reduced)
      if (dim != plan.k)
        outer.push_back(dim);
    std::optional<RegisterHandover> handover = registerHandover(compute);
    std::optional<HeldAccumulators> held;
    if (handover && handover->keepsAccumulators()) {
      held = HeldAccumulators{contraction, *share, {}};
    } else if (handover) {
      reader = handover->readers.front();
      epilogue.emplace(frame, *reader, plan.contraction.n);
    }
    forEach(plan.contraction.batch, [&] {
      Value init = arith::ConstantOp::create(builder, loc, cast<TypedAttr>(compute.getInits()[0]));
      SmallVector<Value> accumulators =
          addUp(frame, plan.tiling, reduce(outer, SmallVector<Value>(share->offsets.size(), init)));
      if (held)
        held->tiles[compute.getAccs()[0]] = std::move(accumulators);
      else if (contraction.share)
        completeTile(frame, *contraction.share, accumulators, [&](ArrayRef<Value> whole) { store(whole); });
      else
        store(accumulators);
    });
    return held;
  }

private:
  /// Emits loops over all points of the dims.
  void forEach(ArrayRef<int64_t> dims, llvm::function_ref<void()> body) {
    if (dims.empty())
      return body();
    int64_t dim = dims.front();
    if (compute.getSizes()[dim] == 1) {
      frame.indices[dim] = frame.offsets[dim];
      return forEach(dims.drop_front(), body);
    }
    emitFor(builder, loc, frame.offsets[dim], frame.ends[dim], frame.constant(1), [&](Value index) {
      frame.indices[dim] = index;
      forEach(dims.drop_front(), body);
    });
  }

  using CarryBody = llvm::function_ref<SmallVector<Value>(Value, ValueRange)>;

  /// Forbids unrolling. The addresses of all copies in an unrolled loop are known before the tile is, so they would be
  /// held in registers over all tiles.
  static void keepRolled(scf::ForOp loop) {
    loop->setAttr("llvm.loop_annotation",
                  parseAttribute("#llvm.loop_annotation<unroll = <disable = true>>", loop.getContext()));
  }

  SmallVector<Value> carry(Value low, Value high, ValueRange values, CarryBody body) {
    scf::ForOp loop = emitFor(builder, loc, low, high, frame.constant(1), values, body);
    keepRolled(loop);
    return SmallVector<Value>(loop.getResults());
  }

  SmallVector<Value> reduce(ArrayRef<int64_t> outer, ValueRange accumulators) {
    if (outer.empty())
      return reduceSteps(accumulators);
    int64_t dim = outer.front();
    return carry(frame.offsets[dim], frame.ends[dim], accumulators, [&](Value index, ValueRange now) {
      frame.indices[dim] = index;
      return reduce(outer.drop_front(), now);
    });
  }

  /// Multiplies the steps in a software pipeline. While a step is multiplied, copies of the next steps are in flight;
  /// after the last ones, the first steps of the next contraction. A slot is refilled only after a barrier at which all
  /// threads have read it, or have waited for the instruction that reads it. Each turn commits one group of copies.
  SmallVector<Value> reduceSteps(ValueRange accumulators) {
    int64_t stages = plan.tiling.stages, ahead = plan.tiling.stepsInFlight();
    beginBulkCopies();
    lhs.fillUp();
    rhs.fillUp();
    copyFirstSteps(ahead);
    SmallVector<Value> initial = share->begin(accumulators);
    SmallVector<Value> done = carry(frame.constant(0), operands.steps, initial, [&](Value step, ValueRange now) {
      wait(ahead - 1);
      if (isOfWarpgroup(plan.kernel))
        handToWarpgroup(frame.modulo(step, stages));
      NVVM::Barrier0Op::create(builder, loc);
      copyBehind(frame.add(step, ahead));
      Value first = frame.add(frame.offsets[plan.k], frame.multiply(step, plan.tiling.step));
      lhs.enter(step, first);
      rhs.enter(step, first);
      rhs.await(step);
      return share->multiplyAdd(now, frame.modulo(step, stages));
    });
    if (!next) // otherwise the only copies in flight are those for the next contraction
      wait(0);
    done = share->finish(done);
    NVVM::Barrier0Op::create(builder, loc);
    endBulkCopies();
    return done;
  }

  /// Returns true if the shared memory of the bulk copies has other users: other nests, or nests that combine rows of
  /// the accumulators. They access it through the generic proxy, bulk copies through the async proxy, and overwriting
  /// an mbarrier destroys it.
  bool sharesMemory() {
    std::optional<RegisterHandover> handover = registerHandover(compute);
    if (handover && handover->keepsAccumulators())
      return true;
    auto program = compute->getParentOfType<ProgramOp>();
    return program
        .walk([&](ComputeOp other) {
          bool isOwn = other == compute || (handover && handover->isReader(other));
          return isOwn ? WalkResult::advance() : WalkResult::interrupt();
        })
        .wasInterrupted();
  }

  void beginBulkCopies() {
    if (!rhs.isCopiedInBulk())
      return;
    if (sharesMemory()) {
      fenceSharedMemory();
      NVVM::Barrier0Op::create(builder, loc);
    }
    rhs.initBarriers();
  }

  void endBulkCopies() {
    if (!rhs.isCopiedInBulk())
      return;
    rhs.invalidateBarriers();
    if (sharesMemory())
      NVVM::Barrier0Op::create(builder, loc);
  }

  /// Copies the first steps. If elements pass through registers, a loop keeps the assembler from loading those of more
  /// steps at the same time than it has registers for.
  void copyFirstSteps(int64_t count) {
    int64_t loads = lhs.loadsTogether() + rhs.loadsTogether(), step = 0;
    int64_t together = loads > 0 ? std::max<int64_t>(frame.costs.firstLoads / loads, 1) : count;
    if (together < count && contraction.prefetched == 0 && !next) {
      step = count / together * together;
      auto loop = scf::ForOp::create(builder, loc, frame.constant(0), frame.constant(step), frame.constant(together));
      keepRolled(loop);
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(loop.getBody());
      for (int64_t each = 0; each < together; ++each) {
        Value own = frame.add(loop.getInductionVar(), each);
        takeTurn(own, [&] { operands.copy(own, own); });
        commit();
      }
    }
    for (; step < count; ++step)
      copyFirst(step);
  }

  /// Copies the operands of a first step that have not been prefetched.
  void copyFirst(int64_t number) {
    Value step = frame.constant(number);
    bool isPrefetched = number < contraction.prefetched;
    takeTurn(step, [&] {
      if (!isPrefetched)
        return operands.copy(step, step);
      operands.copyRest(step, step);
      ifAgain([&] { operands.copyPrefetched(step, step); });
    });
    bool isOfNext = next && !matchPattern(frame.isBelow(step, operands.steps), m_One());
    if (!isPrefetched || isOfNext || operands.restIsAsync(again != nullptr))
      commit();
    else // the prefetch committed its own group
      ifAgain([&] { commit(); });
  }

  /// Emits the body for tiles whose operands were not prefetched.
  void ifAgain(llvm::function_ref<void()> body) {
    if (again)
      emitIf(builder, loc, again, body);
  }

  /// Copies a step inside the loop.
  void copyBehind(Value step) {
    takeTurn(step, [&] { operands.copy(frame.modulo(step, plan.tiling.stages), step); });
    commit();
  }

  /// Takes a turn: runs `copyOwn` if the contraction has the step, otherwise copies a step of the next contraction. The
  /// decision is made at compile time if possible.
  void takeTurn(Value step, llvm::function_ref<void()> copyOwn) {
    Value condition = frame.isBelow(step, operands.steps);
    if (matchPattern(condition, m_One()))
      return copyOwn();
    auto copyOther = [&] { copyPrefetched(builder.createOrFold<arith::SubIOp>(loc, step, operands.steps)); };
    if (matchPattern(condition, m_Zero()))
      return next ? copyOther() : void();
    auto isThere = scf::IfOp::create(builder, loc, condition, /*withElseRegion=*/next.has_value());
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(isThere.thenBlock());
    copyOwn();
    if (!next)
      return;
    builder.setInsertionPointToStart(isThere.elseBlock());
    copyOther();
  }

  /// Fills the slots of the next contraction that are prefetched.
  void copyPrefetched(Value step) {
    int64_t slots = std::min(next->plan.tiling.stepsInFlight(), stepsOf(next->frame.compute, next->plan));
    Value condition = nextExists;
    if (slots < plan.tiling.stepsInFlight()) // there may be more turns than slots
      condition = frame.both(condition, frame.isBelow(step, frame.constant(slots)));
    emitIf(builder, loc, condition, [&] { next->copyPrefetched(step, step); });
  }

  bool isAsync() { return lhs.isAsync() || rhs.isAsync(); }
  void commit() {
    if (isAsync() || next)
      NVVM::CpAsyncCommitGroupOp::create(builder, loc);
  }
  void wait(int64_t groups) {
    if (isAsync())
      NVVM::CpAsyncWaitGroupOp::create(builder, loc, groups);
  }

  /// Makes the thread's copies visible to the warpgroup, which reads shared memory through the async proxy. It
  /// truncates f32 operands to tf32, so the thread that copied an element rounds it first.
  void handToWarpgroup(Value slot) {
    if (roundsInSharedMemory(plan.kernel)) {
      roundOwnCopies(lhs, lhsShape(plan), slot);
      roundOwnCopies(rhs, rhsShape(plan), slot);
    }
    fenceSharedMemory();
  }

  /// Fences the thread's own accesses to shared memory.
  void fenceSharedMemory() {
    NVVM::FenceProxyOp::create(builder, loc,
                               NVVM::ProxyKindAttr::get(builder.getContext(), NVVM::ProxyKind::async_shared),
                               NVVM::SharedSpaceAttr::get(builder.getContext(), NVVM::SharedSpace::shared_cta));
  }

  /// Rounds the elements that this thread copied, for an operand that is contiguous along K.
  void roundOwnCopies(ContractionOperand &operand, OperandShape shape, Value slot) {
    int64_t together = operand.copyBytes() / elementBytes(operand.element()), ofPoint = shape.step / together;
    auto loop = scf::ForOp::create(builder, loc, frame.thread, frame.constant(shape.points * ofPoint),
                                   frame.constant(frame.threads));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value own = loop.getInductionVar(), point = frame.divide(own, ofPoint);
    Value k = frame.multiply(frame.modulo(own, ofPoint), together);
    Value exact = operand.read(slot, point, k, together);
    SmallVector<Value> rounded;
    for (int64_t i = 0; i < together; ++i)
      rounded.push_back(NVVM::ConvertFloatToTF32Op::create(
          builder, loc, builder.getI32Type(), vector::ExtractOp::create(builder, loc, exact, i),
          NVVM::FPRoundingMode::RNA, NVVM::SaturationMode::NONE, /*relu=*/false));
    auto words = VectorType::get({together}, builder.getI32Type());
    Value all = vector::FromElementsOp::create(builder, loc, words, rounded);
    LLVM::StoreOp::create(builder, loc, all, operand.pointer(slot, point, k), operand.copyBytes());
  }

  //===--------------------------------------------------------------------===//
  // Results
  //===--------------------------------------------------------------------===//

  AffineMap accumulatorMap() { return cast<AffineMapAttr>(compute.getAccMaps()[0]).getValue(); }
  SliceType accumulatorType() { return cast<SliceType>(compute.getAccs()[0].getType()); }

  /// Returns how many neighbouring accumulators are stored at once, such that a tile has whole runs of them.
  int64_t togetherOf(const AccumulatorLayout &layout) {
    int64_t n = plan.contraction.n, count = layout.run;
    if (!epilogue)
      return std::min(frame.alignedRun(accumulatorType(), accumulatorMap(), n, count),
                      kAccessBytes / elementBytes(accumulatorType().getElementType()));
    while (compute.getSizes()[n] % count != 0 || compute.getExtents()[n] % count != 0)
      count /= 2;
    return count;
  }

  void store(ArrayRef<Value> accumulators) {
    if (!gainsByLongerRuns(plan, compute, *share, reader ? &*reader : nullptr))
      return store(*share, accumulators);
    AccumulatorLayout longer = withLongerRuns(frame, *share);
    store(longer, exchangePairs(frame, *share, accumulators));
  }

  /// Stores the accumulators row by row. Each row is checked against the tile's bounds only once, so that the code for
  /// its accumulators stays together.
  void store(const AccumulatorLayout &layout, ArrayRef<Value> accumulators) {
    int64_t together = togetherOf(layout);
    llvm::MapVector<int64_t, SmallVector<size_t>> runs;
    for (size_t first = 0; first < accumulators.size(); first += together)
      runs[layout.offsets[first].m].push_back(first);
    Value keeps = storesAtAll();
    for (auto &[row, own] : runs)
      emitIf(builder, loc, frame.both(keeps, enterRow(frame.add(layout.firstM, row))), [&, &own = own] {
        for (size_t first : own) {
          Value place = frame.add(layout.firstN, layout.offsets[first].n);
          emitIf(builder, loc, enter(plan.contraction.n, place, plan.tiling.n),
                 [&] { storeRun(accumulators.slice(first, together)); });
        }
      });
  }

  /// Moves to the row of the tile. Returns the condition for the row to exist, or null if it always does.
  Value enterRow(Value inTile) {
    if (plan.contraction.m >= 0)
      return enter(plan.contraction.m, inTile, plan.tiling.m);
    return plan.tiling.m > 1 ? frame.isBelow(inTile, frame.constant(1)) : Value();
  }

  Value enter(int64_t dim, Value inTile, int64_t points) {
    frame.indices[dim] = frame.add(frame.offsets[dim], inTile);
    return frame.isWhole(dim, points) ? Value() : frame.isBelow(frame.indices[dim], frame.ends[dim]);
  }

  /// Returns the condition for this thread to store, or null; of threads with the same accumulators, only one stores.
  Value storesAtAll() {
    int64_t busy = plan.tiling.mUnits * plan.tiling.nUnits * threadsOfStep(plan.kernel);
    return busy < frame.threads ? frame.isBelow(frame.thread, frame.constant(busy)) : Value();
  }

  void storeRun(ArrayRef<Value> run) {
    Type stored = accumulatorType().getElementType();
    SmallVector<Value> elements = llvm::map_to_vector(run, [&](Value value) -> Value {
      return stored == sum ? value : arith::TruncFOp::create(builder, loc, stored, value).getResult();
    });
    int64_t count = run.size();
    Value value = elements.front();
    if (count > 1)
      value = vector::FromElementsOp::create(builder, loc, VectorType::get({count}, stored), elements);
    if (epilogue) {
      SliceValues registers;
      registers[compute.getAccs()[0]] = value;
      epilogue->emit(registers);
      return;
    }
    Value memory = frame.values.lookup(compute.getAccs()[0]);
    SmallVector<Value> index = frame.at(accumulatorMap());
    if (count == 1) {
      memref::StoreOp::create(builder, loc, value, memory, index);
      return;
    }
    auto store = vector::StoreOp::create(builder, loc, value, memory, index);
    store.setAlignment(count * elementBytes(stored));
  }

  const PlacedContraction &contraction;
  StepOperands operands;
  std::optional<StepOperands> next; ///< contraction whose first steps are prefetched
  Value nextExists;                 ///< null means true
  Value again;
  ContractionFrame &frame;
  OpBuilder &builder;
  ComputeOp compute;
  const ContractionPlan &plan;
  Location loc;
  Type sum;
  ContractionOperand &lhs, &rhs;
  std::unique_ptr<AccumulatorFragment> share;
  std::optional<EpilogueNest> reader; ///< nest of the epilogue
  std::optional<Epilogue> epilogue;
};
} // namespace

std::optional<HeldAccumulators> tilewright::emitContraction(OpBuilder &builder, const PlacedContraction &contraction,
                                                            const UpcomingContraction *next, const IRMapping &values,
                                                            Value thread, int64_t threads) {
  return BlockEmitter(builder, contraction, next, values, thread, threads).emit();
}

AccumulatorLayout tilewright::accumulatorLayout(OpBuilder &builder, const PlacedContraction &contraction,
                                                const IRMapping &values, Value thread, int64_t threads) {
  return *StepOperands(builder, contraction, values, thread, threads).makeFragment();
}

void tilewright::emitFirstCopies(OpBuilder &builder, const PlacedContraction &contraction, const IRMapping &values,
                                 Value thread, int64_t threads) {
  StepOperands operands(builder, contraction, values, thread, threads);
  int64_t steps = stepsOf(contraction.compute, contraction.plan);
  for (int64_t step = 0; step < contraction.plan.tiling.stepsInFlight(); ++step) {
    Value place = operands.frame.constant(step);
    if (step < steps)
      operands.copyPrefetched(place, place);
    NVVM::CpAsyncCommitGroupOp::create(builder, operands.frame.loc);
  }
}
