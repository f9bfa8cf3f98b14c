#include "passes/plan/tiling/gpu/BlockMemory.h"

#include "dialects/tile/BufferOffsets.h"
#include "passes/layout/ScratchPlaces.h"
#include "passes/plan/ir/Phases.h"
#include "passes/plan/space/LiveBuffers.h"
#include "passes/plan/space/TileFootprint.h"
#include "passes/support/BestFit.h"
#include "passes/target/Warpgroups.h"

using namespace mlir;
using namespace tilewright;

int64_t tilewright::residentTileBytes(int64_t bytes) { return llvm::alignTo(bytes + tile::kCopyBytes, kBufferAlignment); }

/// Returns the bytes of the tiles that the plan holds in the memory of a block.
static int64_t bufferBytesOf(const TensorGraph &graph, const GroupPlan &group) {
  int64_t bytes = 0;
  for (const TensorPlan &tensor : group.tensors)
    for (const OpPlan &op : group.ops)
      for (auto [result, map] : llvm::zip(graph.exprs()[op.id].op->getResults(), graph.exprs()[op.id].results)) {
        if (tensor.space != tile::Space::block || tensor.tensor != resultName(graph, cast<OpResult>(result)))
          continue;
        int64_t own = tile::elementBytes(cast<RankedTensorType>(result.getType()).getElementType());
        for (AffineExpr index : map.getResults())
          if (int64_t dim = pureDim(index); dim >= 0 && op.dims[dim] >= 0)
            own *= group.tiles[op.dims[dim]];
        bytes += llvm::alignTo(own, kBufferAlignment);
      }
  return bytes;
}

/// Returns the bytes of a value that threads combine per row after or between contractions, or 0.
static int64_t combinedBytesOf(const TensorGraph &graph, const GroupPlan &group) {
  int64_t bytes = 0;
  for (const OpPlan &op : group.ops)
    if (graph.exprs()[op.id].kind == ExprKind::reduction)
      for (Type result : graph.exprs()[op.id].op->getResultTypes())
        bytes = std::max({bytes, int64_t(4), tile::elementBytes(cast<RankedTensorType>(result).getElementType())});
  return bytes;
}

/// Returns the bytes of the kernel's resident tiles, each of which lives from the phase of its writer to that of its last
/// reader.
static int64_t residentBytes(const Plan &plan, const KernelPlan &kernel) {
  Phases phases = phasesOf(plan, kernel);
  auto phaseOf = [&](unsigned group) {
    auto holds = [&](ArrayRef<unsigned> phase) { return llvm::is_contained(phase, group); };
    return static_cast<unsigned>(llvm::find_if(phases, holds) - phases.begin());
  };
  SmallVector<LiveBuffer> ranges;
  for (const ResidentTile &tile : kernel.residentTiles) {
    auto isSame = [&](const ResidentTile &other) { return other.isSameTile(tile); };
    unsigned last = 0;
    for (const ResidentTile &other : llvm::make_filter_range(kernel.residentTiles, isSame))
      last = std::max(last, phaseOf(other.reader));
    if (&*llvm::find_if(kernel.residentTiles, isSame) == &tile)
      ranges.push_back({residentTileBytes(tile.bytes), phaseOf(tile.writer), last});
  }
  return placeByBestFit(ranges).end;
}

/// Returns the registers per thread of a group's contractions, which may accumulate across the blocks of a walked dim.
static int64_t registersOf(const TensorGraph &graph, const IterationSpace &space,
                           ArrayRef<PlannedContraction> contractions, const GpuCosts &costs) {
  int64_t registers = kUnknownRegisters, grown = 0;
  for (const PlannedContraction &contraction : contractions) {
    registers = std::max(registers, contraction.tiling.registers(costs));
    for (const GroupRoot &root : space.roots)
      if (root.expr == contraction.op && growsInRegisters(graph, space, root))
        grown += contraction.tiling.accumulatorRegisters();
  }
  return registers + (grown > 0 ? grown + costs.loopRegisters : 0);
}

BlockMemory::BlockMemory(const Plan &plan, const TensorGraph &graph, KernelPlan &kernel, const Target &target,
                         llvm::function_ref<const PlannedGroup &(unsigned op)> groupOf)
    : target(target), threads(std::max(target.gpu.warpLanes, kernel.threads())),
      registers(countedRegisters(plan, graph, kernel, target)), workgroups(workgroupsOf(plan, kernel)),
      sms(phasesOf(plan, kernel).size() > 1 ? target.gpu.guaranteedSms : target.cores) {
  int64_t resident = residentBytes(plan, kernel);
  for (GroupPlan &group : kernel.groups) {
    BlockOfGroup &own = groups.emplace_back();
    own.plan = &group;
    own.contractions = plannedContractions(plan, graph, kernel, group, target);
    own.combinedBytes = combinedBytesOf(graph, group);
    if (groupOf) {
      const PlannedGroup &planned = groupOf(group.ops.front().id);
      own.bufferBytes = TileFootprint(graph, planned.choice, target, planned.space).bytes();
      registers = std::max(registers, planned.space.blockWork.registers);
      if (own.contractions.empty())
        stagedBytes = std::max(stagedBytes, planned.space.blockWork.sharedBytes);
      emittedRegisters =
          std::max(emittedRegisters, registersOf(graph, planned.space, own.contractions, target.costs.gpu));
    } else {
      own.bufferBytes = bufferBytesOf(graph, group);
    }
    own.bufferBytes += resident;
  }
  int64_t counted = countedRegisters(plan, graph, kernel, target);
  emittedRegisters = std::min(std::max(emittedRegisters, counted), target.gpu.registersPerThread);
}

bool BlockMemory::isPrefetched(const BlockOfGroup &group, const PlannedContraction &contraction) {
  return group.plan->op(contraction.op).gemm->prefetch != tile::Operands::none;
}

/// Returns the bytes of scratch for the contractions of a group, one after another except for prefetches.
int64_t BlockMemory::scratchBytes(const BlockOfGroup &group, int64_t alignment) const {
  ArrayRef<PlannedContraction> all = group.contractions;
  SmallVector<ScratchUse> placed;
  int64_t end = 0;
  for (auto [number, contraction] : llvm::enumerate(all)) {
    unsigned own = number;
    ScratchUse use{contraction.tiling.sharedBytes(), own, own};
    if (group.combinedBytes > 0)
      use.bytes = std::max(use.bytes, contraction.tiling.combiningBytes(threads, group.combinedBytes));
    auto isTogether = [&](const PlannedContraction &other) { return other.isWalked == contraction.isWalked; };
    unsigned first = llvm::find_if(all, isTogether) - all.begin(), count = llvm::count_if(all, isTogether);
    bool inBlockBefore = contraction.isWalked && own == first && count > 1;
    if (contraction.tiling.residentSteps > 0 || (inBlockBefore && isPrefetched(group, contraction))) {
      use.first = first; // live in the whole loop
      use.last = first + count - 1;
    } else if (isPrefetched(group, contraction)) {
      use.first = own == 0 ? 0 : own - 1;
    }
    use.offset = lowestOffset(use, placed, alignment);
    end = std::max(end, use.offset + use.bytes);
    placed.push_back(use);
  }
  return end;
}

int64_t BlockMemory::bytes() const {
  int64_t most = 0;
  for (const BlockOfGroup &group : groups) {
    bool describes = llvm::any_of(group.plan->ops, [](const OpPlan &op) { return namesWarpgroup(op.microKernel); });
    int64_t alignment = describes ? kWarpgroupAlignment : kBufferAlignment;
    int64_t scratch = scratchBytes(group, std::max(kScratchAlignment, alignment));
    most = std::max<int64_t>(most, llvm::alignTo(group.bufferBytes, alignment) + scratch);
  }
  return most;
}

int64_t BlockMemory::residentBlocks() const {
  return tilewright::residentBlocks(target.gpu, threads, std::max(bytes(), stagedBytes), emittedRegisters);
}

bool BlockMemory::hasRoom(int64_t before, int64_t after) const {
  return hasRoomForPrefetch(target, {workgroups, threads, before, registers}, after, sms);
}

void BlockMemory::forEachContraction(llvm::function_ref<void(OpPlan &op)> visit) const {
  for (const BlockOfGroup &group : groups)
    for (const PlannedContraction &contraction : group.contractions)
      visit(group.plan->op(contraction.op));
}
