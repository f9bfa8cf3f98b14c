#include "passes/plan/grid/PlannedKernel.h"

#include "passes/plan/grid/ResizedGroups.h"

using namespace mlir;
using namespace tilewright;

//===----------------------------------------------------------------------===//
// Blocks of one size
//===----------------------------------------------------------------------===//

static std::optional<PlannedKernel> inBlocksOf(const GridContext &context, ArrayRef<unsigned> parts, int64_t threads,
                                               int64_t resident) {
  PlannedKernel kernel{SmallVector<unsigned>(parts), {}, {}, {}};
  for (unsigned own : parts) {
    const std::optional<PlannedGroup> &planned = context.resized.find(context, own, threads, resident);
    std::optional<GridStage> stage = planned ? stageOf(context, own, parts, planned->space, threads) : std::nullopt;
    if (!stage)
      return std::nullopt;
    kernel.planned.push_back(*planned);
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
static std::optional<PlannedKernel> inBlocksOf(const GridContext &context, ArrayRef<unsigned> parts, int64_t threads) {
  std::optional<PlannedKernel> kernel = inBlocksOf(context, parts, threads, /*resident=*/0);
  return kernel ? inBlocksOf(context, parts, threads, kernel->grid.residentBlocks) : std::nullopt;
}

/// Returns the kernel in blocks of the common size for which it takes the least time, since each group was planned for
/// a block size of its own. Returns nothing if no size takes less than `most` seconds.
static std::optional<PlannedKernel> inBlocksAlike(const GridContext &context, ArrayRef<unsigned> parts, double most) {
  std::optional<PlannedKernel> best;
  for (int64_t threads : {128, 256, 512, 1024}) {
    std::optional<PlannedKernel> kernel = inBlocksOf(context, parts, threads);
    if (!kernel || kernel->seconds() >= most)
      continue;
    most = kernel->seconds();
    best = std::move(kernel);
  }
  return best;
}

/// Replans contractions that run side by side. Each group was planned for all SMs, but side by side each one has a
/// share of them. Fewer, larger tiles may then take less time than several waves.
static std::optional<PlannedKernel> withTilesOfShares(const GridContext &context, const PlannedKernel &before) {
  PlannedKernel kernel = before;
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
      const std::optional<PlannedGroup> &planned =
          context.resized.find(context, own, before.grid.threads, before.grid.residentBlocks, most);
      std::optional<GridStage> stage =
          planned ? stageOf(context, own, before.parts, planned->space, before.grid.threads) : std::nullopt;
      if (!stage)
        return std::nullopt;
      kernel.planned[share.stage] = *planned;
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

static PlannedKernel inShares(const GridContext &context, PlannedKernel kernel) {
  std::optional<PlannedKernel> other = withTilesOfShares(context, kernel);
  return other ? std::move(*other) : std::move(kernel);
}

std::optional<PlannedKernel> tilewright::planKernel(const GridContext &context, ArrayRef<unsigned> parts, double bound,
                                                    std::string *cut) {
  std::optional<std::vector<GridStage>> stages = stagesOf(context, parts);
  GridPartition asTheyAre =
      stages ? partitionAtGridSync(*stages, context.target, {context.allowed, /*byCost=*/true}) : GridPartition();
  if (cut && !asTheyAre.cuts.empty())
    *cut = asTheyAre.cuts.front().reason;
  bool joins = stages && asTheyAre.kernels.size() == 1 && asTheyAre.seconds() <= bound;
  double most = joins ? kWorthOtherBlocks * asTheyAre.seconds() : bound;
  bool mayResize = context.allowed && !(joins && context.anyContracts(parts));
  if (std::optional<PlannedKernel> alike = mayResize ? inBlocksAlike(context, parts, most) : std::nullopt)
    return inShares(context, std::move(*alike));
  if (!joins)
    return std::nullopt;
  PlannedKernel kernel{SmallVector<unsigned>(parts), {}, std::move(*stages), std::move(asTheyAre.kernels.front())};
  for (unsigned own : parts)
    kernel.planned.push_back(context.part(own));
  return inShares(context, std::move(kernel));
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

void tilewright::giveBlocks(const GridContext &context, const PlannedKernel &kernel, unsigned index,
                            PlannedGroup &part) {
  auto isOwn = [&](const GridShare &share) { return share.stage == index; };
  auto hasOwn = [&](ArrayRef<GridShare> phase) { return llvm::any_of(phase, isOwn); };
  ArrayRef<GridShare> phase = *llvm::find_if(kernel.grid.phases, hasOwn);
  const GridShare &share = *llvm::find_if(phase, isOwn);
  const GridStage &stage = kernel.stages[index];
  int64_t together = llvm::divideCeil(blocksOf(phase), context.target.gpu.guaranteedSms);
  BlockWork work = part.space.blockWork;
  work.mostResident = kernel.grid.residentBlocks;
  // This comes before the stage is asked for times: its contraction may refer to this very space, and counts what each
  // workgroup recomputes.
  part.space.workgroups = part.work.workgroups = share.blocks;
  part.space.steps = share.sharesTiles ? stage.steps : 0;
  part.work.latencySeconds = share.sharesTiles
                                 ? context.target.gpu.gridBarrierSeconds + stage.sharedSeconds(share.blocks, together)
                             : stage.seconds ? stage.seconds(share.blocks, together)
                                             : blockLatency(work, context.target).seconds;
  if (context.contracts(kernel.parts[index]))
    part.space.threads = kernel.grid.threads;
}

void tilewright::carryOut(const GridContext &context, const PlannedKernel &kernel, size_t index, Decisions &decisions) {
  llvm::append_range(decisions.residentInputs, kernel.residentInputs);
  for (auto [stage, own] : llvm::enumerate(kernel.parts)) {
    decisions.parts[own] = kernel.planned[stage];
    giveBlocks(context, kernel, stage, *decisions.parts[own]);
  }
  SmallVector<unsigned> order;
  for (ArrayRef<GridShare> phase : kernel.grid.phases)
    for (const GridShare &share : phase)
      order.push_back(kernel.parts[share.stage]);
  decisions.kernels[index] = order;
}
