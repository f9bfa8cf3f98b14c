#include "passes/plan/grid/GridStages.h"

#include "passes/plan/grid/KernelPhases.h"
#include "passes/plan/grid/KernelSignature.h"
#include "passes/plan/space/SharedRows.h"
#include "passes/plan/tiling/gpu/ContractionBlocks.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tilewright;

/// Returns the registers of a thread that accumulates in a loop: its own accumulators, and those of other threads that
/// it combines with them afterwards.
static int64_t registersOfAccumulators(const IterationSpace &space, const GpuCosts &costs) {
  const BlockWork &work = space.blockWork;
  int64_t narrowest = work.accessBytes, accumulators = 0;
  for (Value input : space.inputs)
    narrowest = std::min(narrowest, tile::elementBytes(cast<RankedTensorType>(input.getType()).getElementType()));
  for (const NestWork &nest : work.nests)
    accumulators = std::max(accumulators, nest.accumulators * work.accessBytes / narrowest);
  return accumulators > 0 ? costs.besideAccumulators + 2 * accumulators : 0;
}

/// Returns the registers per thread that the residency proof counts on (countedRegisters). Launch bounds hold the
/// assembler to this number; where it would have to spill, the kernel gets fewer blocks.
static int64_t registersOf(const IterationSpace &space, const Target &target) {
  return std::min(target.gpu.registersPerThread,
                  std::max(kUnknownRegisters, registersOfAccumulators(space, target.costs.gpu)));
}

/// Describes a contraction's stage in blocks of `threads` threads. Returns false if such blocks cannot compute its
/// tile.
static bool describeContraction(const GridContext &context, const IterationSpace &space, int64_t threads,
                                GridStage &stage) {
  const TensorGraph &graph = context.graph;
  const Target &target = context.target;
  std::optional<BlockWork> work = contractionBlockWork(graph, target, space, threads);
  if (!work)
    return false;
  stage.work = *work;
  stage.work.registers = std::max(stage.work.registers, kUnknownRegisters);
  auto own = std::make_shared<const IterationSpace>(space);
  stage.seconds = [&graph, &target, own, threads](double blocks, double together) {
    return contractionSeconds(graph, target, *own, threads, blocks, together);
  };
  stage.steps = sharedTiles(graph, target, space, threads).steps;
  stage.sharedSeconds = [&graph, &target, own, threads](double blocks, double together) {
    return sharedSeconds(graph, target, *own, threads, blocks, together);
  };
  return true;
}

std::optional<GridStage> tilewright::stageOf(const GridContext &context, unsigned own, ArrayRef<unsigned> parts,
                                             const IterationSpace &space, int64_t threads) {
  const GroupChoice &choice = context.part(own).choice;
  GridStage stage;
  // No number of an op: reasons are memoised, and serve equal kernels of other layers.
  stage.name = context.graph.exprs()[choice.exprs.back()].op->getName().getStringRef().str();
  stage.work = space.blockWork;
  stage.work.registers = registersOf(space, context.target);
  for (auto [i, other] : llvm::enumerate(parts))
    if (other != own && readsResultsOf(context.graph, choice, context.part(other).choice))
      stage.producers.push_back(i);
  stage.waits = rowExchanges(context.graph, space) > 0;
  stage.walks = !stage.waits;
  if (context.contracts(own) && !describeContraction(context, space, threads, stage))
    return std::nullopt;
  return stage;
}

std::optional<std::vector<GridStage>> tilewright::stagesOf(const GridContext &context, ArrayRef<unsigned> parts) {
  int64_t threads = 0;
  for (unsigned own : parts)
    threads = std::max(threads, context.part(own).space.threads);
  std::vector<GridStage> stages;
  for (unsigned own : parts) {
    std::optional<GridStage> stage = stageOf(context, own, parts, context.part(own).space, threads);
    if (!stage)
      return std::nullopt;
    stages.push_back(std::move(*stage));
  }
  return stages;
}

namespace {
/// The prediction for the first kernel with a signature.
struct FirstSeconds {
  double seconds;
};
} // namespace

double tilewright::predictedSeconds(const GridContext &context, ArrayRef<unsigned> parts) {
  KernelFrame frame;
  MemoKey key = signatureOf(context, parts, frame);
  if (const FirstSeconds *first = context.groups.memo().find<FirstSeconds>(key))
    return first->seconds;
  std::optional<std::vector<GridStage>> stages = stagesOf(context, parts);
  double seconds =
      stages ? partitionAtGridSync(*stages, context.target, {context.allowed, /*byCost=*/false}).seconds() : 0;
  return context.groups.memo().keep<FirstSeconds>(std::move(key), {seconds}).seconds;
}

std::optional<GridKernel> tilewright::joinStages(const GridContext &context, ArrayRef<GridStage> stages) {
  GridPartition made = partitionAtGridSync(stages, context.target, {context.allowed, /*byCost=*/false});
  return made.kernels.size() > 1 ? std::nullopt : std::optional(std::move(made.kernels.front()));
}
