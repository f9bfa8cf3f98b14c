// Each nest's scratch is live for a range of nests; first fit in program order. Prefetches extend the range back to the
// contraction before, loops to the whole loop.
#include "passes/program/gpu/ScratchOffsets.h"

#include "passes/layout/ScratchPlaces.h"
#include "passes/program/RegisterHandover.h"
#include "passes/program/gpu/ContractionPlan.h"
#include "passes/program/gpu/PartWork.h"
#include "passes/program/gpu/Prefetch.h"
#include "passes/program/gpu/ThreadMapping.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

/// Returns the bytes of scratch that a nest needs to combine values of several warps, or for the operands of a
/// contraction.
static int64_t scratchBytesOf(ComputeOp compute, int64_t threads, const Target &target) {
  if (compute.getMicroKernel()) {
    OrDeclined<ContractionPlan> plan = planContraction(compute, threads, target);
    if (!plan)
      return 0; // code generation reports the error
    std::optional<RegisterHandover> handover = registerHandover(compute);
    int64_t ofRows = handover && handover->keepsAccumulators() ? rowScratchBytes(*handover, *plan, threads) : 0;
    return std::max(plan->tiling.sharedBytes(), ofRows);
  }
  if (contractionHandedTo(compute))
    return 0; // the contraction's scratch serves to combine its rows
  BlockShape shape = {threads, blockShapeOf(compute->getParentOfType<ParallelOp>()).group};
  return combiningScratchBytes(compute, mapNest(compute, shape));
}

static bool keepsRows(ComputeOp compute, int64_t threads, const Target &target) {
  if (!compute.getMicroKernel())
    return false;
  OrDeclined<ContractionPlan> plan = planContraction(compute, threads, target);
  return plan && plan->tiling.residentSteps > 0;
}

ScratchOffsets tilewright::scratchOffsets(ParallelOp part, int64_t threads, const Target &target) {
  DenseMap<Operation *, unsigned> position;
  SmallVector<ComputeOp> nests;
  part.walk<WalkOrder::PreOrder>([&](ComputeOp compute) {
    position[compute] = nests.size();
    nests.push_back(compute);
  });
  SmallVector<ScratchUse> placed;
  int64_t alignment = std::max(kScratchAlignment, scratchAlignment(part));
  ScratchOffsets all;
  for (ComputeOp compute : nests) {
    ScratchUse own{scratchBytesOf(compute, threads, target), position[compute], position[compute]};
    if (own.bytes == 0)
      continue;
    if (isPrefetchedInBlockBefore(compute) || keepsRows(compute, threads, target))
      for (auto nest : compute->getBlock()->getOps<ComputeOp>()) { // live in the whole loop
        own.first = std::min(own.first, position[nest]);
        own.last = std::max(own.last, position[nest]);
      }
    else if (prefetchOf(compute).any())
      own.first = position.lookup(contractionBefore(compute)); // 0 if the prefetches start before the part
    // A contraction whose accumulators stay in registers is computed with the nests that read them.
    if (compute.getMicroKernel())
      if (std::optional<RegisterHandover> handover = registerHandover(compute))
        own.last = std::max(own.last, position[handover->readers.back().nest]);
    own.offset = lowestOffset(own, placed, alignment);
    all.offsets[compute] = own.offset;
    all.bytes = std::max(all.bytes, own.offset + own.bytes);
    placed.push_back(own);
  }
  return all;
}
