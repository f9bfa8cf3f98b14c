// Converts level 3 to target code on the CPU: each tile program becomes one function over memrefs. Workgroups take
// contiguous ranges of the grid's tiles. Block barriers need no code, because one thread runs a workgroup.
#include "dialects/tile/TargetOf.h"
#include "passes/Passes.h"
#include "passes/codegen/common/NestEmitter.h"
#include "passes/codegen/common/ProgramConverter.h"
#include "passes/codegen/cpu/ContractionEmitter.h"
#include "passes/codegen/cpu/TilePipeline.h"
#include "passes/codegen/cpu/TransposeEmitter.h"
#include "passes/support/WorkNotes.h"
#include "passes/target/TargetOrError.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Remarks.h"

namespace tilewright {
#define GEN_PASS_DEF_CONVERTTOVECTOR
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
constexpr int64_t kStackAlignment = 64; ///< bytes

VectorShape shapeFor(const Target &target) {
  VectorShape shape{target.vectorBytes, target.vectorRegisters};
  for (const MemoryLevel &level : llvm::reverse(target.levels))
    if (level.space == Space::block)
      shape.cacheBytes = level.capacityBytes;
  shape.outerBytes = target.level(Space::block).capacityBytes;
  shape.fusesProducts = target.has("fma");
  shape.windowsTogether = target.costs.cpu.windowsTogether;
  shape.nestRegisters = target.costs.cpu.nestRegisters;
  shape.unrolledPoints = target.costs.cpu.unrolledPoints;
  shape.stridedLanes = target.costs.cpu.stridedLanes;
  return shape;
}

class CpuConverter : public ProgramConverter {
public:
  CpuConverter(ProgramOp program, const Target &target)
      : ProgramConverter(program), target(target), shape(shapeFor(target)) {
    program.walk([&](ParallelOp part) {
      pipelines[part] = pipelineTiles(program, part, shape);
      if (StringRef reason = pipelines[part].reason; !reason.empty())
        remark::missed(part.getLoc(), remark::RemarkOpts::name("tiles-apart").category("tile-convert-to-vector"))
            << reason;
    });
  }

private:
  LogicalResult emitCompute(OpBuilder &builder, ComputeOp compute, IRMapping &values) override {
    FailureOr<bool> contracts = compute.getMicroKernel() ? emitContraction(builder, compute, values, target) : false;
    if (failed(contracts) || *contracts)
      return contracts;
    if (emitTranspose(builder, compute, values, shape))
      return success();
    if (llvm::any_of(compute.getInits(), llvm::IsaPred<UnitAttr>))
      return compute.emitError(
          "the nest continues accumulators from their slice, but no micro kernel that can do so fits it");
    emitNest(builder, compute, values, shape);
    return success();
  }

  void emitSync(OpBuilder &, SyncOp) override {}

  /// Returns the bytes of the buffers of one tile.
  int64_t tileBytes() { return llvm::alignTo(program.getBlockBytes(), kStackAlignment); }
  int64_t blockBytes() override {
    bool isTwice = llvm::any_of(pipelines, [](auto &entry) { return static_cast<bool>(entry.second); });
    return isTwice ? 2 * tileBytes() : program.getBlockBytes();
  }

  /// Emits pipelined tiles: first the first nest of the first tile, then a loop with the remaining nests of each tile
  /// beside the first nest of the next one, and finally the remaining nests of the last tile.
  bool convertTiles(OpBuilder &builder, ParallelOp part, Value low, Value high, const IRMapping &values) override {
    const TilePipeline &pipeline = pipelines[part];
    if (!pipeline)
      return false;
    Location loc = part.getLoc();
    Value one = arith::ConstantIndexOp::create(builder, loc, 1);
    Value whole = memory;
    IRMapping first = enterBuffers(builder, part, low, low, whole, values);
    emitNest(builder, pipeline.first, first, shape);
    auto loop = scf::ForOp::create(builder, loc, arith::AddIOp::create(builder, loc, low, one), high, one);
    OpBuilder body = OpBuilder::atBlockTerminator(loop.getBody());
    Value tile = loop.getInductionVar();
    IRMapping before = enterBuffers(body, part, low, arith::SubIOp::create(body, loc, tile, one), whole, values);
    convertBetween(body, pipeline, before);
    IRMapping now = enterBuffers(body, part, low, tile, whole, values);
    emitNestsTogether(body, pipeline.first, now, pipeline.last, before, shape);
    IRMapping last = enterBuffers(builder, part, low, arith::SubIOp::create(builder, loc, high, one), whole, values);
    convertBetween(builder, pipeline, last);
    emitNest(builder, pipeline.last, last, shape);
    memory = whole;
    return true;
  }

  /// Maps the offsets and buffers of a tile. The buffers of odd tiles lie behind those of even tiles.
  IRMapping enterBuffers(OpBuilder &builder, ParallelOp part, Value first, Value tile, Value whole,
                         const IRMapping &values) {
    Location loc = part.getLoc();
    IRMapping inside = values;
    enterTile(builder, part, first, tile, inside);
    auto constant = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(builder, loc, value); };
    Value isOdd = arith::AndIOp::create(builder, loc, tile, constant(1));
    Value start = arith::MulIOp::create(builder, loc, isOdd, constant(tileBytes()));
    auto type = MemRefType::get({tileBytes()}, builder.getI8Type());
    memory = memref::ViewOp::create(builder, loc, type, whole, start, ValueRange());
    for (AllocOp alloc : part.getWalk().getBody().getOps<AllocOp>())
      convertOp(builder, *alloc, inside);
    return inside;
  }

  void convertBetween(OpBuilder &builder, const TilePipeline &pipeline, IRMapping &values) {
    for (Operation *op = pipeline.first->getNextNode(); op != pipeline.last; op = op->getNextNode())
      if (!isa<AllocOp>(op))
        convertOp(builder, *op, values);
  }

  /// Returns true if the workgroup's memory is on the stack. IREE's local-sync driver clears the memory that it provides
  /// at every dispatch, whereas stack of the size that its own kernels may use costs nothing.
  bool onStack() { return blockBytes() <= target.costs.cpu.stackBytes; }
  int64_t givenBytes() override { return onStack() ? 0 : blockBytes(); }
  Value placeMemory(OpBuilder &builder, Value given) override {
    if (!onStack() || blockBytes() == 0)
      return given;
    return memref::AllocaOp::create(builder, program.getLoc(), cast<MemRefType>(given.getType()),
                                    builder.getI64IntegerAttr(kStackAlignment));
  }

  /// Emits a fence after non-temporal stores. Other threads may see such stores in any order, even after the store that
  /// signals the end of the kernel.
  void finish(OpBuilder &builder) override {
    if (program.walk([](StoreOp store) { return WalkResult(store.getStreamed() ? failure() : success()); })
            .wasInterrupted())
      LLVM::CallIntrinsicOp::create(builder, program.getLoc(), builder.getStringAttr("llvm.x86.sse.sfence"),
                                    ValueRange());
  }

  const Target &target;
  VectorShape shape;
  llvm::MapVector<Operation *, TilePipeline> pipelines; ///< the pipeline of each part
};

struct ConvertToVector : tilewright::impl::ConvertToVectorBase<ConvertToVector> {
  using ConvertToVectorBase::ConvertToVectorBase;

  void runOnOperation() override {
    // An unknown target is an error even if every program has a target of its own, or there are no programs.
    if (failed(targetOrError(getOperation(), target)))
      return signalPassFailure();
    SmallVector<ProgramOp> programs;
    getOperation().walk([&](ProgramOp program) { programs.push_back(program); });
    for (auto [index, program] : llvm::enumerate(programs)) {
      noteWork(program, {index + 1, programs.size()});
      FailureOr<Target> known = targetOrError(program, targetOf(program, target));
      if (failed(known))
        return signalPassFailure();
      OpBuilder builder(program);
      if (failed(CpuConverter(program, *known).convert(builder)))
        return signalPassFailure();
      program.erase();
    }
  }
};
} // namespace
