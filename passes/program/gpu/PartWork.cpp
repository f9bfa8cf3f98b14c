// Adds up the shared memory of buffers and scratch, and takes registers from the layouts of contractions.
#include "passes/program/gpu/PartWork.h"

#include "dialects/tile/BufferOffsets.h"
#include "dialects/tile/Phases.h"
#include "passes/program/PartBuffers.h"
#include "passes/program/RegisterHandover.h"
#include "passes/program/gpu/ContractionPlan.h"
#include "passes/program/gpu/ScratchOffsets.h"
#include "passes/support/BestFit.h"
#include "passes/target/Warpgroups.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

int64_t tilewright::threadsOf(ProgramOp program) {
  int64_t threads = 1;
  for (auto part : program.getBody().getOps<ParallelOp>())
    threads = std::max(threads, blockShapeOf(part).threads);
  return threads;
}

/// Returns true if the part has a micro kernel that is described to use wgmma. This holds even if the target turns out
/// not to have wgmma and another micro kernel replaces it.
static bool isDescribed(ParallelOp part) {
  return part
      ->walk([](ComputeOp compute) {
        std::optional<StringRef> kernel = compute.getMicroKernel();
        return kernel && namesWarpgroup(*kernel) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

int64_t tilewright::scratchAlignment(ParallelOp part) {
  return isDescribed(part) ? kWarpgroupAlignment : kBufferAlignment;
}

int64_t tilewright::scratchOffset(ParallelOp part) {
  int64_t end = 0;
  part->getParentOfType<ProgramOp>().walk([&](AllocOp alloc) {
    bool isLive = part->isAncestor(alloc) || residentTileNumber(alloc) >= 0;
    if (isLive && alloc.getOffset() && !staysInRegisters(alloc))
      end = std::max(end, static_cast<int64_t>(*alloc.getOffset()) + bufferBytes(alloc));
  });
  return llvm::alignTo(end, scratchAlignment(part));
}

int64_t tilewright::sharedBytesOf(ParallelOp part, int64_t threads, const Target &target) {
  int64_t scratch = scratchOffsets(part, threads, target).bytes;
  return scratch > 0 ? scratchOffset(part) + scratch : 0;
}

int64_t tilewright::sharedBytesOf(ProgramOp program, const Target &target) {
  int64_t threads = threadsOf(program), bytes = program.getBlockBytes();
  for (auto part : program.getBody().getOps<ParallelOp>())
    bytes = std::max(bytes, sharedBytesOf(part, threads, target));
  return bytes;
}

int64_t tilewright::boundBufferBytes(ParallelOp part) {
  int64_t bytes = placeByBestFit(residentBuffersOf(part->getParentOfType<ProgramOp>()).ranges).end;
  part->walk([&](AllocOp alloc) {
    if (residentTileNumber(alloc) < 0)
      bytes += llvm::alignTo(bufferBytes(alloc), kBufferAlignment);
  });
  return bytes;
}

bool tilewright::staysResident(ProgramOp program, int64_t sharedBytes, const Target &target) {
  if (!syncsAtGrid(program))
    return true;
  int64_t threads = threadsOf(program), registers = 0;
  for (auto part : program.getBody().getOps<ParallelOp>())
    registers = std::max(registers, registersOf(part, threads, target));
  int64_t resident = residentBlocks(target.gpu, threads, sharedBytes, registers);
  return sharedBytes <= target.blockBytes && program.getWorkgroups() <= coResidentBlocks(target, resident);
}

int64_t tilewright::registersOf(ParallelOp part, int64_t threads, const Target &target) {
  int64_t registers = kUnknownRegisters;
  part.walk([&](ComputeOp compute) {
    if (!compute.getMicroKernel())
      return;
    if (OrDeclined<ContractionPlan> plan = planContraction(compute, threads, target))
      registers = std::max(registers, plan->tiling.registers(target.costs.gpu));
  });
  part.walk([&](scf::ForOp loop) {
    SmallVector<GrowingAccumulators> all = grownIn(loop);
    registers += all.empty() ? 0 : target.costs.gpu.loopRegisters;
    for (const GrowingAccumulators &grown : all)
      if (OrDeclined<ContractionPlan> plan = planContraction(grown.contraction, threads, target))
        registers += plan->tiling.accumulatorRegisters();
  });
  return std::min(registers, target.gpu.registersPerThread);
}
