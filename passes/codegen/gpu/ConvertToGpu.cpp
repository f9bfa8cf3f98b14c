// Converts tile programs (level 3) to target code for a GPU: each tile program becomes one function over memrefs that
// every thread of a block runs. Nests are emitted as on a CPU, with loops divided among threads (ThreadMapping). A
// hand-over between nests is a buffer in shared memory and a barrier with the scope of its tile.sync.
#include "dialects/tile/Phases.h"
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/codegen/common/EmitLoops.h"
#include "passes/codegen/common/ProgramConverter.h"
#include "passes/codegen/gpu/LaunchBounds.h"
#include "passes/codegen/gpu/copy/ClusterCopy.h"
#include "passes/codegen/gpu/copy/TileCopyEmitter.h"
#include "passes/codegen/gpu/gemm/ContractionBlock.h"
#include "passes/codegen/gpu/gemm/RowEpilogue.h"
#include "passes/codegen/gpu/nest/BlockThreads.h"
#include "passes/codegen/gpu/nest/FirstStep.h"
#include "passes/codegen/gpu/nest/GridBarrier.h"
#include "passes/program/RegisterHandover.h"
#include "passes/program/gpu/PartWork.h"
#include "passes/program/gpu/Prefetch.h"
#include "passes/program/gpu/ResidentWeights.h"
#include "passes/program/gpu/ScratchOffsets.h"
#include "passes/support/WorkNotes.h"
#include "passes/target/TargetOrError.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Remarks.h"

namespace tilewright {
#define GEN_PASS_DEF_CONVERTTOGPU
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
class GpuConverter : public ProgramConverter {
public:
  GpuConverter(ProgramOp program, const Target &target)
      : ProgramConverter(program), context(program.getContext()), target(target), threads(threadsOf(program)),
        weights(residentWeights(program, target)) {}

  int64_t numThreads() const { return threads; }

private:
  Attribute globalSpace() const override { return space(1); }
  Attribute blockSpace() const override { return space(3); }
  Attribute space(int64_t number) const { return IntegerAttr::get(IntegerType::get(context, 64), number); }

  /// Returns the shape of the part's blocks. Parts that run side by side have blocks of the same size.
  BlockShape shapeOf(ParallelOp part) const { return {threads, blockShapeOf(part).group}; }

  int64_t blockBytes() override { return sharedBytesWithWeights(program, target); }

  /// Returns the number of workgroups, rounded up to whole clusters; the last cluster may have idle blocks.
  int64_t launchedWorkgroups() override {
    auto first = *program.getBody().getOps<ParallelOp>().begin();
    return llvm::alignTo(program.getWorkgroups(), clusterOf(first));
  }

  void beginPart(OpBuilder &builder, ParallelOp part) override {
    Location loc = part.getLoc();
    shape = shapeOf(part);
    thread = NVVM::ThreadIdXOp::create(builder, loc, builder.getI32Type());
    if (hasPhases())
      thread = threadOfItsOwn(builder, loc);
    if (clusterOf(part) > 1)
      arriveAtCluster(builder, loc, /*hasWritten=*/false);
    scratchOfPart = scratchOffsets(part, threads, target);
    firstScratch = scratchOffset(part);
  }

  /// Returns the nest's scratch in shared memory, or null if it needs none.
  Value scratchOf(OpBuilder &builder, ComputeOp compute) {
    auto place = scratchOfPart.offsets.find(compute);
    if (place == scratchOfPart.offsets.end())
      return Value();
    Location loc = compute.getLoc();
    int64_t begin = firstScratch + place->second;
    Value start = arith::ConstantIndexOp::create(builder, loc, begin);
    int64_t bytes = cast<MemRefType>(memory.getType()).getNumElements() - begin;
    auto type = MemRefType::get({bytes}, builder.getI8Type(), MemRefLayoutAttrInterface(), blockSpace());
    return memref::ViewOp::create(builder, loc, type, memory, start, ValueRange());
  }

  static Value isFirstOf(OpBuilder &builder, scf::ForOp loop, const IRMapping &values) {
    return arith::CmpIOp::create(builder, loop.getLoc(), arith::CmpIPredicate::eq,
                                 values.lookup(loop.getInductionVar()), values.lookup(loop.getLowerBound()));
  }

  static LogicalResult refuse(ComputeOp compute, const Declined &why) {
    return compute.emitError("the contraction has no code generation on GPUs: ") << why.reason;
  }

  OrDeclined<PlacedContraction> place(OpBuilder &builder, ComputeOp compute, const IRMapping &values) {
    OrDeclined<ContractionPlan> plan = planContraction(compute, threads, target);
    if (!plan)
      return plan.why();
    PlacedContraction placed{compute, *plan, scratchOf(builder, compute), &target.costs.gpu};
    for (const ResidentWeight &weight : weights)
      if (weight.contraction == compute) {
        placed.residentRhs = weight.offset - firstScratch - scratchOfPart.offsets.lookup(compute);
        placed.firstStep = isFirstStep(builder, compute.getLoc(), program->getParentOfType<ModuleOp>());
      }
    placed.share = share;
    placed.prefetched = prefetchedSteps(compute, *plan, threads, target);
    if (plan->tiling.residentSteps > 0)
      placed.firstOfLoop = isFirstOf(builder, cast<scf::ForOp>(compute->getParentOp()), values);
    return placed;
  }

  /// Returns the contraction whose prefetches start during the one before it, possibly that of the loop's next
  /// iteration.
  UpcomingContraction upcoming(OpBuilder &builder, const PlacedContraction &placed, const IRMapping &values) {
    UpcomingContraction next{placed, values, {}};
    if (!isPrefetchedInBlockBefore(placed.compute))
      return next;
    auto loop = cast<scf::ForOp>(ComputeOp(placed.compute)->getParentOp());
    Value now = values.lookup(loop.getInductionVar()), step = values.lookup(loop.getStep());
    Value later = arith::AddIOp::create(builder, loop.getLoc(), now, step);
    next.values.map(loop.getInductionVar(), later);
    next.exists = arith::CmpIOp::create(builder, loop.getLoc(), arith::CmpIPredicate::slt, later,
                                        values.lookup(loop.getUpperBound()));
    return next;
  }

  LogicalResult emitProduct(OpBuilder &builder, ComputeOp compute, const IRMapping &values) {
    if (isOneOfMany(compute))
      thread = threadOfItsOwn(builder, compute.getLoc());
    OrDeclined<PlacedContraction> own = place(builder, compute, values);
    if (!own)
      return refuse(compute, own.why());
    std::optional<UpcomingContraction> next;
    if (ComputeOp behind = contractionPrefetchedDuring(compute)) {
      OrDeclined<PlacedContraction> placed = place(builder, behind, values);
      if (!placed)
        return refuse(compute, placed.why());
      next = upcoming(builder, *placed, values);
    }
    auto part = compute->getParentOfType<ParallelOp>();
    if (contractionPrefetchedBefore(part) == compute)
      own->again = isLaterTile(builder, part);
    if (isPrefetchedInBlockBefore(compute))
      own->again = isFirstOf(builder, cast<scf::ForOp>(compute->getParentOp()), values);
    std::optional<HeldAccumulators> accumulators =
        emitContraction(builder, *own, next ? &*next : nullptr, values, thread, threads);
    if (accumulators)
      held.insert_or_assign(compute, std::move(*accumulators));
    return success();
  }

  bool beginsEarly(ParallelOp part) const override { return contractionPrefetchedBefore(part) != nullptr; }

  /// Emits the prefetches before the barrier of the grid. The block barrier is needed because slower threads may still
  /// read shared memory of the previous phase.
  LogicalResult emitEarly(OpBuilder &builder, ParallelOp part, IRMapping &values) override {
    ComputeOp contraction = contractionPrefetchedBefore(part);
    beginPart(builder, part);
    OrDeclined<PlacedContraction> placed = place(builder, contraction, values);
    if (!placed)
      return refuse(contraction, placed.why());
    NVVM::Barrier0Op::create(builder, part.getLoc());
    emitFirstCopies(builder, *placed, values, thread, threads);
    return success();
  }

  /// Emits a nest that reads the contraction's accumulators from registers.
  LogicalResult emitReader(OpBuilder &builder, ComputeOp contraction, ComputeOp nest, const IRMapping &values) {
    RegisterHandover handover = *registerHandover(contraction);
    if (nest == handover.readers.front().nest && failed(emitProduct(builder, contraction, values)))
      return failure();
    if (!handover.keepsAccumulators())
      return success();
    if (!held.contains(contraction))
      return failure(); // emitting the first reader has reported the error
    HeldAccumulators &accumulators = held[contraction];
    if (handover.grows)
      for (const GrowingAccumulators &own : grownIn(cast<scf::ForOp>(contraction->getParentOp())))
        if (own.contraction == contraction)
          accumulators.tiles[own.slice] = grown[own.slice];
    for (const EpilogueNest &reader : handover.readers)
      if (reader.nest == nest)
        emitEpilogueNest(builder, accumulators, reader, values, thread, threads);
    for (auto &[slice, tile] : accumulators.tiles)
      if (grown.contains(slice))
        grown[slice] = tile;
    return success();
  }

  SmallVector<Value> startLoop(OpBuilder &builder, scf::ForOp loop) override {
    SmallVector<Value> start;
    for (GrowingAccumulators own : grownIn(loop))
      if (OrDeclined<ContractionPlan> plan = planContraction(own.contraction, threads, target))
        start.append(plan->tiling.accumulators, arith::ConstantOp::create(builder, loop.getLoc(), own.start));
    return start;
  }

  void enterLoop(scf::ForOp loop, ValueRange values) override {
    for (GrowingAccumulators own : grownIn(loop))
      if (OrDeclined<ContractionPlan> plan = planContraction(own.contraction, threads, target)) {
        grown[own.slice] = SmallVector<Value>(values.take_front(plan->tiling.accumulators));
        values = values.drop_front(plan->tiling.accumulators);
      }
  }

  SmallVector<Value> carriedBy(scf::ForOp loop) override {
    SmallVector<Value> values;
    for (GrowingAccumulators own : grownIn(loop))
      llvm::append_range(values, grown[own.slice]);
    return values;
  }

  /// Emits a nest that initialises accumulators that grow in registers, or that reads them behind the loop.
  LogicalResult emitBesideGrown(OpBuilder &builder, const GrowingAccumulators &own, ComputeOp nest, IRMapping values) {
    if (nest == own.starting)
      return success(); // the loop carries the initial values
    auto loop = cast<scf::ForOp>(own.contraction->getParentOp());
    values.map(loop.getInductionVar(),
               values.lookup(loop.getLowerBound())); // the tile has the same offset in all blocks of the walk
    OrDeclined<PlacedContraction> placed = place(builder, own.contraction, values);
    if (!placed)
      return refuse(own.contraction, placed.why());
    HeldAccumulators accumulators{*placed, accumulatorLayout(builder, *placed, values, thread, threads), {}};
    std::swap(accumulators.tiles[own.slice], grown[own.slice]);
    for (const EpilogueNest &reader : own.readers)
      if (reader.nest == nest)
        emitEpilogueNest(builder, accumulators, reader, values, thread, threads);
    std::swap(accumulators.tiles[own.slice], grown[own.slice]);
    return success();
  }

  LogicalResult emitCompute(OpBuilder &builder, ComputeOp compute, IRMapping &values) override {
    // A contraction whose accumulators stay in registers is computed with the nest that reads them.
    if (registerHandover(compute))
      return success();
    if (ComputeOp contraction = contractionHandedTo(compute))
      return emitReader(builder, contraction, compute, values);
    if (std::optional<GrowingAccumulators> own = grownBeside(compute))
      return emitBesideGrown(builder, *own, compute, values);
    if (compute.getMicroKernel())
      return emitProduct(builder, compute, values);
    if (isTileCopy(compute) && clusterOf(compute) > 1) {
      emitClusterCopy(builder, compute, values, thread, threads);
      Operation *next = compute->getNextNode();
      if (!isa<ComputeOp>(next) || clusterOf(next) == 1)
        arriveAtCluster(builder, compute.getLoc(), /*hasWritten=*/true);
      return success();
    }
    emitIf(builder, compute.getLoc(), blockHasTile(builder, compute), [&] { emitWork(builder, compute, values); });
    return success();
  }

  /// Returns true (as a value) if the block has a tile, that is, is not idle in the last cluster; null if all blocks
  /// have one.
  Value blockHasTile(OpBuilder &builder, ComputeOp compute) {
    auto part = compute->getParentOfType<ParallelOp>();
    if (part.getNumTiles() % clusterOf(part) == 0)
      return Value();
    Location loc = compute.getLoc();
    Value tiles = arith::ConstantIndexOp::create(builder, loc, part.getNumTiles());
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, current.tile, tiles);
  }

  void emitWork(OpBuilder &builder, ComputeOp compute, const IRMapping &values) {
    if (isTileCopy(compute))
      return emitTileCopy(builder, compute, values, thread, threads, target.costs.gpu);
    NestMapping mapping = mapNest(compute, shape);
    assert(mapping.verify().empty() && "each bit of the thread index belongs to one dim");
    BlockThreads sharing(compute, mapping, thread, scratchOf(builder, compute), target.costs.gpu);
    emitNest(builder, compute, values, VectorShape(), &sharing);
  }

  /// Arrives at the barrier of the cluster. It is split into arrive and wait: threads arrive when they have started, or
  /// have written what other blocks read behind the barrier, and wait only at the sync.
  static void arriveAtCluster(OpBuilder &builder, Location loc, bool hasWritten) {
    if (hasWritten)
      NVVM::ClusterArriveOp::create(builder, loc, builder.getUnitAttr());
    else
      NVVM::ClusterArriveRelaxedOp::create(builder, loc, builder.getUnitAttr());
  }

  /// Emits the barrier of the sync's scope. A hand-over within a thread needs none.
  void emitSync(OpBuilder &builder, SyncOp sync) override {
    if (sync.getScope() == Scope::grid)
      syncAtGrid(builder, sync.getLoc());
    else if (sync.getScope() == Scope::warp)
      NVVM::SyncWarpOp::create(builder, sync.getLoc(), arith::ConstantIntOp::create(builder, sync.getLoc(), -1, 32));
    else if (sync.getScope() == Scope::cluster)
      NVVM::ClusterWaitOp::create(builder, sync.getLoc(), builder.getUnitAttr());
    else if (sync.getScope() != Scope::thread)
      NVVM::Barrier0Op::create(builder, sync.getLoc());
  }

  void syncAtGrid(OpBuilder &builder, Location loc) {
    callGridBarrier(builder, loc, program->getParentOfType<ModuleOp>(), program.getSymName(), program.getWorkgroups());
  }

  LogicalResult emitGridSync(OpBuilder &builder, SyncOp sync) override {
    syncAtGrid(builder, sync.getLoc());
    return success();
  }

  /// Returns the workgroup's share of the tile's steps, if it has the steps from `low` to `high`, and the workgroups
  /// that have the tile's remaining steps.
  StepShare shareOf(OpBuilder &builder, ParallelOp part, Value tile, Value low, Value high) {
    Location loc = part.getLoc();
    auto constant = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(builder, loc, value); };
    Value steps = constant(*part.getSteps()), begin = arith::MulIOp::create(builder, loc, tile, steps);
    Value end = arith::AddIOp::create(builder, loc, begin, steps);
    Value from = arith::MaxUIOp::create(builder, loc, low, begin), to = arith::MinUIOp::create(builder, loc, high, end);
    StepShare share;
    share.first = arith::SubIOp::create(builder, loc, from, begin);
    share.count = arith::SubIOp::create(builder, loc, to, from);
    share.begins = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, from, begin);
    // Workgroup w begins at step w * units / workgroups, rounded down.
    Value scaled = arith::MulIOp::create(builder, loc, end, constant(part.getWorkgroups()));
    share.endRow = arith::CeilDivUIOp::create(builder, loc, scaled, constant(part.getNumUnits()));
    share.syncGrid = [this, loc](OpBuilder &at) { syncAtGrid(at, loc); };
    return share;
  }

  /// Converts a part with shared steps: the workgroup has the steps from `low` to `high` of all tiles, hence some steps
  /// of each of several tiles.
  LogicalResult convertSteps(OpBuilder &builder, ParallelOp part, Value workgroup, Value low, Value high,
                             IRMapping values) override {
    if (!part.getPartials())
      return part.emitError(
          "the part shares tiles but has no buffer for partial sums: run tile-allocate-partials first");
    Location loc = part.getLoc();
    Value steps = arith::ConstantIndexOp::create(builder, loc, *part.getSteps());
    Value one = arith::ConstantIndexOp::create(builder, loc, 1);
    Value first = arith::DivUIOp::create(builder, loc, low, steps);
    Value end = arith::CeilDivUIOp::create(builder, loc, high, steps);
    auto loop = scf::ForOp::create(builder, loc, first, end, one);
    OpBuilder body = OpBuilder::atBlockTerminator(loop.getBody());
    Value tile = loop.getInductionVar();
    enterTile(body, part, first, tile, values);
    share = shareOf(body, part, tile, low, high);
    share->isLast =
        arith::CmpIOp::create(body, loc, arith::CmpIPredicate::eq, arith::AddIOp::create(body, loc, tile, one), end);
    share->partials = values.lookup(part.getPartials());
    share->own = workgroup;
    share->nextRow = arith::AddIOp::create(body, loc, workgroup, one);
    for (Operation &op : part.getWalk().getBody().front())
      convertOp(body, op, values);
    share.reset();
    endTile(body, part);
    return success();
  }

  void enterTile(OpBuilder &builder, ParallelOp part, Value first, Value tile, IRMapping &values) override {
    ProgramConverter::enterTile(builder, part, first, tile, values);
    bool contracts = part.walk([](ComputeOp compute) {
                           return compute.getMicroKernel() ? WalkResult::interrupt() : WalkResult::advance();
                         })
                         .wasInterrupted();
    if (contracts || hasPhases())
      thread = threadOfItsOwn(builder, part.getLoc());
  }

  /// Returns true for a contraction of a tile that has so many that sharing what follows from the thread index would
  /// take more registers than it saves instructions. In a loop it would compute a copy of the index in each iteration.
  bool isOneOfMany(ComputeOp compute) {
    Block &tile = compute->getParentOfType<ParallelOp>().getWalk().getBody().front();
    auto contracts = [](ComputeOp each) { return each.getMicroKernel().has_value(); };
    return compute->getBlock() == &tile && llvm::count_if(tile.getOps<ComputeOp>(), contracts) >
                                                    target.costs.gpu.sharingContractions;
  }

  bool hasPhases() { return !program.getBody().getOps<SyncOp>().empty(); }

  /// Returns a copy of the thread index that the optimiser cannot identify with the original. Otherwise the values that
  /// one phase, one tile of a contraction, or one of many contractions of a tile computes from it (offsets of copies and
  /// operands) would be shared and kept in registers from their first use to the last.
  Value threadOfItsOwn(OpBuilder &builder, Location loc) {
    Value own = LLVM::InlineAsmOp::create(builder, loc, thread.getType(), thread, /*asm_string=*/"", "=r,0",
                                          /*has_side_effects=*/true, /*is_align_stack=*/false,
                                          LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr())
                    .getResult(0);
    // The mask restores what the optimiser knew about the range: the number of threads is a power of two.
    Value most = arith::ConstantIntOp::create(builder, loc, own.getType(), threads - 1);
    return arith::AndIOp::create(builder, loc, own, most);
  }

  /// Ends a tile. Nests of the next tile write buffers that slower threads may still read, which needs a barrier unless
  /// the tile ends in a sync.
  void endTile(OpBuilder &builder, ParallelOp part) override {
    Block &tile = part.getWalk().getBody().front();
    if (!tile.getOps<AllocOp>().empty() && !isa<SyncOp>(tile.back()))
      NVVM::Barrier0Op::create(builder, part.getLoc());
  }

  /// Ends a block of a walk. The next block overwrites buffers that slower threads may still read.
  void endBlock(OpBuilder &builder, Location loc) override { NVVM::Barrier0Op::create(builder, loc); }

  MLIRContext *context;
  const Target &target;
  int64_t threads;
  SmallVector<ResidentWeight> weights; ///< that stay in shared memory over all steps
  std::optional<StepShare> share; ///< share of the current tile, if workgroups share it
  BlockShape shape;               ///< block shape of the current part
  Value thread;
  ScratchOffsets scratchOfPart;                       ///< scratch of the current part
  llvm::DenseMap<Operation *, HeldAccumulators> held; ///< accumulators in registers, by contraction
  llvm::DenseMap<Value, SmallVector<Value>> grown;    ///< tiles that grow in registers, by slice
  int64_t firstScratch = 0;                           ///< offset of the first scratch, behind the buffers
};

struct ConvertToGpu : tilewright::impl::ConvertToGpuBase<ConvertToGpu> {
  using ConvertToGpuBase::ConvertToGpuBase;

  void runOnOperation() override {
    FailureOr<Target> known = targetOrError(getOperation(), target);
    if (failed(known))
      return signalPassFailure();
    SmallVector<ProgramOp> programs;
    getOperation().walk([&](ProgramOp program) { programs.push_back(program); });
    for (auto [index, program] : llvm::enumerate(programs)) {
      noteWork(program, {index + 1, programs.size()});
      if (failed(checkLaunch(program, *known)))
        return signalPassFailure();
      OpBuilder builder(program);
      GpuConverter converter(program, *known);
      FailureOr<func::FuncOp> function = converter.convert(builder);
      if (failed(function))
        return signalPassFailure();
      (*function)->setAttr(kThreadsAttr, builder.getI64IntegerAttr(converter.numThreads()));
      if (Attribute cluster = (*program.getBody().getOps<ParallelOp>().begin())->getAttr(kClusterAttr))
        (*function)->setAttr(kClusterAttr, cluster);
      if (failed(checkBlockBytes(*function, *known)))
        return signalPassFailure();
      if (failed(proveCoResidency(program, *function, *known)) ||
          failed(boundRegisters(program, *function, *known)))
        return signalPassFailure();
      program.erase();
    }
  }
};
} // namespace
