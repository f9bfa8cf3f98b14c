#include "passes/codegen/gpu/PartWork.h"

#include "passes/codegen/gpu/BlockThreads.h"
#include "passes/codegen/gpu/ContractionBlock.h"
#include "passes/cost/GridPartition.h"
#include "passes/target/Warpgroups.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

/// Of the scratch: with descriptors, after which the widest swizzle repeats.
static constexpr int64_t kAlignment = 64, kDescribedAlignment = 1024;

int64_t tilewright::threadsOf(ProgramOp program) {
  int64_t threads = 1;
  for (auto part : program.getBody().getOps<ParallelOp>())
    threads = std::max(threads, blockShapeOf(part).threads);
  return threads;
}

/// Also where the target has no wgmma in the end, and another micro kernel takes its place.
static bool isDescribed(ProgramOp program) {
  return program
      ->walk([](ComputeOp compute) {
        std::optional<StringRef> kernel = compute.getMicroKernel();
        return kernel && kernel->starts_with(kWarpgroupKernel) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

int64_t tilewright::scratchOffset(ProgramOp program) {
  return llvm::alignTo(program.getBlockBytes(), isDescribed(program) ? kDescribedAlignment : kAlignment);
}

/// What a nest needs besides its buffers: to combine sums of several warps, or for the operands of a contraction.
static int64_t scratchBytesOf(ComputeOp compute, int64_t threads, const Target &target) {
  if (compute.getMicroKernel()) {
    std::optional<ContractionPlan> plan = planContraction(compute, threads, target);
    return plan ? plan->tiling.sharedBytes() : 0; // otherwise refused when code is generated
  }
  BlockShape shape = {threads, blockShapeOf(compute->getParentOfType<ParallelOp>()).group};
  return BlockThreads::scratchBytes(compute, mapNest(compute, shape));
}

int64_t tilewright::sharedBytesOf(ProgramOp program, const Target &target) {
  int64_t threads = threadsOf(program), scratch = 0;
  program.walk([&](ComputeOp compute) { scratch = std::max(scratch, scratchBytesOf(compute, threads, target)); });
  return scratch > 0 ? scratchOffset(program) + scratch : program.getBlockBytes();
}

static NestWork nestWorkOf(ComputeOp compute, BlockShape shape) {
  NestMapping mapping = mapNest(compute, shape);
  NestWork nest;
  for (auto [dim, size] : llvm::enumerate(compute.getSizes())) {
    int64_t step = (int64_t(1) << mapping.bits[dim].count) *
                   (static_cast<int64_t>(dim) == static_cast<int64_t>(compute.getVector()) ? mapping.lanes : 1);
    nest.turns *= llvm::divideCeil(size, step);
  }
  for (Operation &op : compute.getBodyBlock().without_terminator()) {
    if (auto load = dyn_cast<LoadOp>(op))
      (load.getSlice().getType().getSpace() == Space::global ? nest.globalLoads : nest.sharedLoads) += 1;
    else if (!op.hasTrait<OpTrait::ConstantLike>())
      nest.instructions += mapping.lanes;
  }
  nest.accumulators = compute.getAccs().size();
  nest.combinedLanes = int64_t(1) << llvm::popcount(mapping.reduced & ((1u << kWarpBits) - 1));
  nest.combinedWarps = int64_t(1) << llvm::popcount(mapping.reduced >> kWarpBits);
  return nest;
}

BlockWork tilewright::blockWorkOf(ParallelOp part, const Target &target) {
  BlockShape shape = blockShapeOf(part);
  BlockWork work;
  work.blocks = part.getNumTiles();
  work.threads = shape.threads;
  work.sharedBytes = sharedBytesOf(part->getParentOfType<ProgramOp>(), target);
  auto registers = part->getAttrOfType<IntegerAttr>(kRegistersAttr);
  work.registers = registers ? registers.getInt() : kUnknownRegisters;
  work.warpPrivate = llvm::none_of(part.getWalk().getBody().getOps<SyncOp>(),
                                   [](SyncOp sync) { return sync.getScope() >= Scope::block; });
  work.accessBytes = 1;
  llvm::SetVector<Value> touched;
  auto touch = [&](Value slice, int64_t lanes) {
    auto type = cast<SliceType>(slice.getType());
    if (type.getSpace() != Space::global)
      return;
    work.accessBytes = std::max(work.accessBytes, lanes * elementBytes(type.getElementType()));
    if (touched.insert(slice))
      work.bytes += static_cast<double>(type.getNumBytes());
  };
  part.walk([&](ComputeOp compute) {
    work.nests.push_back(nestWorkOf(compute, shape));
    int64_t lanes = mapNest(compute, shape).lanes;
    compute.walk([&](LoadOp load) { touch(load.getSlice(), lanes); });
    compute.walk([&](StoreOp store) { touch(store.getSlice(), lanes); });
    for (Value slice : compute.getAccs())
      touch(slice, 1);
  });
  return work;
}
