// Adds up the shared memory of a block as the passes on programs allocate it: the buffers of a group, and behind them
// the scratch of its contractions, each as long as it is live. Contractions are considered in the order in which a
// block computes them, so that earlier ones have room first.
#include "passes/plan/tiling/gpu/PlannedPrefetch.h"

#include "passes/layout/ScratchPlaces.h"
#include "passes/plan/ir/Phases.h"
#include "passes/plan/space/TileFootprint.h"
#include "passes/plan/tiling/gpu/PlannedGemms.h"
#include "passes/support/BestFit.h"
#include "passes/target/Occupancy.h"
#include "passes/target/Warpgroups.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// A group of a kernel, with what its blocks need.
struct BlockOfGroup {
  GroupPlan *plan;
  std::vector<PlannedContraction> contractions; ///< in the order in which a block computes them
  int64_t bufferBytes = 0, registers = kUnknownRegisters;
  int64_t combinedBytes = 0; ///< bytes of a value that threads combine with others' of its row; 0 if none do
};
} // namespace

static bool isPrefetched(const BlockOfGroup &group, const PlannedContraction &contraction) {
  return group.plan->op(contraction.op).gemm->prefetch != tile::Operands::none;
}

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

/// Returns the bytes of scratch for the contractions of a group, one after another except for prefetches.
static int64_t scratchBytes(const BlockOfGroup &group, int64_t threads, int64_t alignment) {
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

/// Returns the shared memory of a block that computes one group after another.
static int64_t sharedBytes(ArrayRef<BlockOfGroup> groups, int64_t threads) {
  int64_t most = 0;
  for (const BlockOfGroup &group : groups) {
    bool describes = llvm::any_of(group.plan->ops, [](const OpPlan &op) { return namesWarpgroup(op.microKernel); });
    int64_t alignment = describes ? kWarpgroupAlignment : kBufferAlignment;
    int64_t scratch = scratchBytes(group, threads, std::max(kScratchAlignment, alignment));
    most = std::max<int64_t>(most, llvm::alignTo(group.bufferBytes, alignment) + scratch);
  }
  return most;
}

void tilewright::settlePrefetches(Plan &plan, const TensorGraph &graph, const Target &target,
                                  llvm::function_ref<bool(unsigned op)> isGiven,
                                  llvm::function_ref<const PlannedGroup &(unsigned op)> groupOf) {
  for (KernelPlan &kernel : plan.kernels) {
    int64_t threads = std::max(target.gpu.warpLanes, kernel.threads()), resident = 0,
            registers = countedRegisters(plan, graph, kernel, target);
    std::vector<BlockOfGroup> groups;
    for (const ResidentTile &tile : kernel.residentTiles)
      resident += llvm::alignTo(tile.bytes, kBufferAlignment);
    for (GroupPlan &group : kernel.groups) {
      BlockOfGroup &own = groups.emplace_back();
      own.plan = &group;
      own.contractions = plannedContractions(plan, graph, kernel, group, target);
      own.combinedBytes = combinedBytesOf(graph, group);
      if (groupOf) {
        const PlannedGroup &planned = groupOf(group.ops.front().id);
        own.bufferBytes = TileFootprint(graph, planned.choice, target, planned.space).bytes();
        registers = std::max(registers, planned.space.blockWork.registers);
      } else {
        own.bufferBytes = bufferBytesOf(graph, group);
      }
      own.bufferBytes += resident;
    }
    auto forEach = [&](llvm::function_ref<void(OpPlan &op)> visit) {
      for (const BlockOfGroup &group : groups)
        for (const PlannedContraction &contraction : group.contractions)
          visit(group.plan->op(contraction.op));
    };
    llvm::DenseMap<unsigned, tile::Operands> wanted;
    forEach([&](OpPlan &op) {
      if (!isGiven(op.id))
        wanted[op.id] = std::exchange(op.gemm->prefetch, tile::Operands::none);
    });
    bool waits = phasesOf(plan, kernel).size() > 1;
    BlockResources block{workgroupsOf(plan, kernel), threads, sharedBytes(groups, threads), registers};
    forEach([&](OpPlan &op) {
      auto own = wanted.find(op.id);
      if (own == wanted.end() || own->second == tile::Operands::none)
        return;
      op.gemm->prefetch = own->second;
      int64_t with = sharedBytes(groups, threads);
      if (hasRoomForPrefetch(target, block, with, waits ? target.gpu.guaranteedSms : target.cores))
        block.sharedBytes = with;
      else
        op.gemm->prefetch = tile::Operands::none;
    });
  }
}
