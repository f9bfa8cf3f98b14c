// A phase whose blocks do not all fit gets fewer of them, which then process several tiles in turn.
#include "passes/cost/GridPhases.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <deque>

using namespace llvm;
using namespace tilewright;

SmallVector<unsigned> tilewright::breadthFirst(ArrayRef<GridStage> stages) {
  SmallVector<unsigned> order, waiting(stages.size());
  std::deque<unsigned> ready;
  for (auto [i, stage] : enumerate(stages))
    if ((waiting[i] = stage.producers.size()) == 0)
      ready.push_back(i);
  while (!ready.empty()) {
    unsigned stage = ready.front();
    ready.pop_front();
    order.push_back(stage);
    for (auto [i, reader] : enumerate(stages))
      for (unsigned producer : reader.producers)
        if (producer == stage && --waiting[i] == 0)
          ready.push_back(i);
  }
  assert(order.size() == stages.size() && "stages do not depend on themselves");
  return order;
}

GridKernel tilewright::kernelOf(ArrayRef<GridStage> stages, unsigned stage, const Target &target) {
  BlockResources block = resourcesOf(stages[stage].work);
  GridKernel kernel;
  kernel.phases = {{{stage, block.blocks}}};
  kernel.blocks = block.blocks;
  kernel.threads = block.threads;
  kernel.sharedBytes = block.sharedBytes;
  kernel.registers = block.registers;
  if (target.gpu.guaranteedSms > 0)
    kernel.residentBlocks = residentBlocks(target.gpu, block.threads, block.sharedBytes, block.registers);
  return kernel;
}

GridKernel tilewright::withStage(GridKernel kernel, ArrayRef<GridStage> stages, unsigned stage,
                                  const Target &target) {
  size_t phase = 0;
  for (auto [i, shares] : enumerate(kernel.phases))
    for (const GridShare &share : shares)
      if (is_contained(stages[stage].producers, share.stage))
        phase = i + 1;
  kernel.phases.resize(std::max(kernel.phases.size(), phase + 1));
  kernel.phases[phase].push_back({stage, 0});
  BlockResources block = resourcesOf(stages[stage].work);
  kernel.threads = std::max(kernel.threads, block.threads);
  kernel.sharedBytes = std::max(kernel.sharedBytes, block.sharedBytes);
  kernel.registers = std::max(kernel.registers, block.registers);
  kernel.residentBlocks = residentBlocks(target.gpu, kernel.threads, kernel.sharedBytes, kernel.registers);
  return kernel;
}

/// Returns how many tiles each block of a phase takes in turn, the same for all of its stages that walk.
static int64_t turnsOf(ArrayRef<GridShare> phase, ArrayRef<GridStage> stages, int64_t slots) {
  auto blocksAt = [&](int64_t turns) {
    int64_t blocks = 0;
    for (const GridShare &share : phase) {
      int64_t own = stages[share.stage].work.blocks;
      blocks += stages[share.stage].walks ? llvm::divideCeil(own, turns) : own;
    }
    return blocks;
  };
  int64_t turns = 1, least = blocksAt(std::numeric_limits<int64_t>::max());
  while (blocksAt(turns) > std::max(slots, least))
    ++turns;
  return turns;
}

std::string tilewright::shareOut(GridKernel &kernel, ArrayRef<GridStage> stages, const Target &target) {
  int64_t slots = coResidentBlocks(target, kernel.residentBlocks);
  auto tooMany = [&](const std::string &name, int64_t blocks) -> std::string {
    return formatv("the {0} blocks of {1} cannot all be resident: the target guarantees {2} SMs with {3} blocks each "
                   "of {4} threads, {5} registers a thread and {6} bytes of shared memory",
                   blocks, name, target.gpu.guaranteedSms, kernel.residentBlocks, kernel.threads, kernel.registers,
                   kernel.sharedBytes);
  };
  kernel.blocks = 0;
  for (std::vector<GridShare> &phase : kernel.phases) {
    int64_t wanted = 0, given = 0;
    for (const GridShare &share : phase)
      if (stages[share.stage].waits && phase.size() > 1)
        return stages[share.stage].name + " has grid barriers of its own, so no other op runs beside it";
    for (const GridShare &share : phase)
      wanted += stages[share.stage].work.blocks;
    int64_t turns = turnsOf(phase, stages, slots);
    for (GridShare &share : phase) {
      const GridStage &stage = stages[share.stage];
      share = {share.stage, stage.work.blocks};
      if (wanted > slots && stage.walks && phase.size() == 1)
        share.blocks = std::max<int64_t>(1, static_cast<double>(share.blocks) * slots / wanted);
      else if (wanted > slots && stage.walks)
        share.blocks = llvm::divideCeil(share.blocks, turns);
      given += share.blocks;
      if (given > slots)
        return tooMany(stage.name, stage.work.blocks);
    }
    kernel.blocks = std::max(kernel.blocks, given);
  }
  for (const std::vector<GridShare> &phase : kernel.phases)
    if (const GridStage &first = stages[phase.front().stage]; first.waits && phase.front().blocks < kernel.blocks)
      return first.name + " has grid barriers of its own, at which all blocks of the kernel would have to wait";
  return "";
}
