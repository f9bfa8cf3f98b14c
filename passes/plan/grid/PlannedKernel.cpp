#include "passes/plan/grid/PlannedKernel.h"

#include "passes/cost/Confidence.h"
#include "passes/plan/grid/KernelSignature.h"
#include "passes/plan/grid/ResizedGroups.h"

using namespace mlir;
using namespace tilewright;

//===----------------------------------------------------------------------===//
// Blocks of one size
//===----------------------------------------------------------------------===//

static std::optional<StagedKernel> inBlocksOf(const GridContext &context, ArrayRef<unsigned> parts, int64_t threads,
                                              int64_t resident) {
  StagedKernel kernel{SmallVector<unsigned>(parts), {}, {}, {}};
  for (unsigned own : parts) {
    std::optional<PlannedGroup> planned = resizedGroup(context, own, threads, resident);
    std::optional<GridStage> stage = planned ? stageOf(context, own, parts, planned->space, threads) : std::nullopt;
    if (!stage)
      return std::nullopt;
    kernel.planned.push_back(std::move(*planned));
    kernel.stages.push_back(std::move(*stage));
  }
  std::optional<GridKernel> grid = joinStages(context, kernel.stages);
  if (!grid)
    return std::nullopt;
  kernel.grid = std::move(*grid);
  return kernel;
}

/// Plans blocks of this size twice. The group with the most shared memory limits how many are resident on an SM; the
/// blocks of all groups are then chosen again for that number.
static std::optional<StagedKernel> inBlocksOf(const GridContext &context, ArrayRef<unsigned> parts, int64_t threads) {
  std::optional<StagedKernel> kernel = inBlocksOf(context, parts, threads, /*resident=*/0);
  return kernel ? inBlocksOf(context, parts, threads, kernel->grid.residentBlocks) : std::nullopt;
}

/// Returns the kernel in blocks of the common size for which it takes the least time, since each group was planned for
/// a block size of its own. Returns nothing if no size takes less than `most` seconds.
static std::optional<StagedKernel> inBlocksAlike(const GridContext &context, ArrayRef<unsigned> parts, double most) {
  std::optional<StagedKernel> best;
  for (int64_t threads : {128, 256, 512, 1024}) {
    std::optional<StagedKernel> kernel = inBlocksOf(context, parts, threads);
    if (!kernel || kernel->seconds() >= most)
      continue;
    most = kernel->seconds();
    best = std::move(kernel);
  }
  return best;
}

/// Replans contractions that run side by side. Each group was planned for all SMs, but side by side each one has a
/// share of them. Fewer, larger tiles may then take less time than several waves.
static std::optional<StagedKernel> withTilesOfShares(const GridContext &context, const StagedKernel &before) {
  StagedKernel kernel = before;
  double slots = static_cast<double>(coResidentBlocks(context.target, before.grid.residentBlocks));
  bool changed = false;
  for (ArrayRef<GridShare> phase : before.grid.phases) {
    double wanted = 0;
    for (const GridShare &share : phase)
      wanted += static_cast<double>(before.stages[share.stage].work.blocks);
    for (const GridShare &share : phase) {
      unsigned own = before.parts[share.stage];
      double tiles = static_cast<double>(before.stages[share.stage].work.blocks);
      if (phase.size() == 1 || wanted <= slots || !context.contracts(own))
        continue;
      auto most = std::max<int64_t>(1, static_cast<int64_t>(slots * tiles / wanted));
      std::optional<PlannedGroup> planned =
          resizedGroup(context, own, before.grid.threads, before.grid.residentBlocks, most);
      std::optional<GridStage> stage =
          planned ? stageOf(context, own, before.parts, planned->space, before.grid.threads) : std::nullopt;
      if (!stage)
        return std::nullopt;
      kernel.planned[share.stage] = std::move(*planned);
      kernel.stages[share.stage] = std::move(*stage);
      changed = true;
    }
  }
  std::optional<GridKernel> grid = changed ? joinStages(context, kernel.stages) : std::nullopt;
  if (!grid || grid->seconds >= before.seconds())
    return std::nullopt;
  kernel.grid = std::move(*grid);
  return kernel;
}

static PlannedKernel inShares(const GridContext &context, const StagedKernel &kernel) {
  std::optional<StagedKernel> other = withTilesOfShares(context, kernel);
  return finish(context, other ? *other : kernel);
}

static OrDeclined<PlannedKernel> planKernelAnew(const GridContext &context, ArrayRef<unsigned> parts, double bound) {
  std::optional<std::vector<GridStage>> stages = stagesOf(context, parts);
  GridPartition asTheyAre =
      stages ? partitionAtGridSync(*stages, context.target, {context.allowed, /*byCost=*/true}) : GridPartition();
  bool joins = stages && asTheyAre.kernels.size() == 1 && asTheyAre.seconds() <= bound;
  double most = joins ? leastFaster(asTheyAre.seconds(), context.target.costs.confidence.tilings) : bound;
  bool mayResize = context.allowed && !(joins && context.anyContracts(parts));
  if (std::optional<StagedKernel> alike = mayResize ? inBlocksAlike(context, parts, most) : std::nullopt)
    return inShares(context, *alike);
  if (!joins)
    return Declined{asTheyAre.cuts.empty() ? "" : asTheyAre.cuts.front().reason,
                    stages ? "a launch that costs more, or blocks that take less time" : "blocks of one size"};
  StagedKernel kernel{SmallVector<unsigned>(parts), {}, std::move(*stages), std::move(asTheyAre.kernels.front())};
  for (unsigned own : parts)
    kernel.planned.push_back(context.part(own));
  return inShares(context, kernel);
}

namespace {
/// The plan of the first kernel with a signature.
struct FirstKernel {
  KernelFrame frame;
  OrDeclined<PlannedKernel> planned;
};
} // namespace

OrDeclined<PlannedKernel> tilewright::planKernel(const GridContext &context, ArrayRef<unsigned> parts, double bound) {
  SmallVector<unsigned> exprs;
  for (unsigned part : parts)
    llvm::append_range(exprs, context.part(part).choice.exprs);
  if (std::optional<Declined> why = whyNotGathered(context.graph, exprs))
    return *why;
  KernelFrame frame;
  MemoKey key = signatureOf(context, parts, frame);
  key.push_back(llvm::bit_cast<int64_t>(bound));
  const FirstKernel *first = context.groups.memo().find<FirstKernel>(key);
  if (!first)
    first = &context.groups.memo().keep<FirstKernel>(std::move(key), {frame, planKernelAnew(context, parts, bound)});
  if (!first->planned)
    return first->planned.why();
  PlannedKernel kernel = *first->planned;
  for (auto [part, group] : llvm::zip(kernel.parts, kernel.groups)) {
    unsigned place = first->frame.placeOf(part);
    part = frame.parts[place];
    group = rebase(context, group, place, first->frame, frame);
  }
  return kernel;
}

//===----------------------------------------------------------------------===//
// Applying a kernel
//===----------------------------------------------------------------------===//

static int64_t blocksOf(ArrayRef<GridShare> phase) {
  int64_t blocks = 0;
  for (const GridShare &share : phase)
    blocks += share.blocks;
  return blocks;
}

/// Gives a group the blocks that its stage has in the kernel.
static PlannedGroup withBlocks(const GridContext &context, const StagedKernel &kernel, ArrayRef<GridShare> phase,
                               const GridShare &share) {
  const GridStage &stage = kernel.stages[share.stage];
  unsigned own = kernel.parts[share.stage];
  PlannedGroup part = kernel.planned[share.stage];
  int64_t together = llvm::divideCeil(blocksOf(phase), context.target.gpu.guaranteedSms);
  BlockWork work = part.space.blockWork;
  work.mostResident = kernel.grid.residentBlocks;
  part.space.workgroups = part.work.workgroups = share.blocks;
  part.space.steps = share.sharesTiles ? stage.steps : 0;
  // The times of a contraction depend on the number of workgroups, each of which recomputes what it shares.
  GridStage timed = *stageOf(context, own, kernel.parts, part.space, kernel.grid.threads);
  part.work.latencySeconds = share.sharesTiles
                                 ? context.target.gpu.gridBarrierSeconds + timed.sharedSeconds(share.blocks, together)
                             : timed.seconds ? timed.seconds(share.blocks, together)
                                             : blockLatency(work, context.target).seconds;
  if (context.contracts(own))
    part.space.threads = kernel.grid.threads;
  return part;
}

PlannedKernel tilewright::finish(const GridContext &context, const StagedKernel &kernel,
                                 std::vector<ResidentTile> residentInputs) {
  PlannedKernel finished{{}, {}, kernel.seconds(), std::move(residentInputs)};
  for (ArrayRef<GridShare> phase : kernel.grid.phases)
    for (const GridShare &share : phase) {
      finished.parts.push_back(kernel.parts[share.stage]);
      finished.groups.push_back(withBlocks(context, kernel, phase, share));
    }
  return finished;
}

void tilewright::carryOut(const PlannedKernel &kernel, size_t index, Decisions &decisions) {
  llvm::append_range(decisions.residentInputs, kernel.residentInputs);
  for (auto [own, group] : llvm::zip(kernel.parts, kernel.groups))
    decisions.parts[own] = group;
  decisions.kernels[index] = kernel.parts;
}
