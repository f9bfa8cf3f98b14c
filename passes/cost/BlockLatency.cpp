// Adds up the cycles of a warp over its loop nests: the latency of loads, instructions by class, and combining
// accumulators. A kernel takes the longest of the waves of blocks times those cycles, its DRAM bytes at the rate that
// Little's law allows, and its L2 traffic through the ports of the SMs.
#include "passes/cost/BlockLatency.h"

using namespace llvm;
using namespace tilewright;

namespace {
double combineCycles(const NestWork &nest, const Target &target) {
  const GpuCosts &costs = target.costs.gpu;
  double cycles = costs.shuffleCycles * Log2_64_Ceil(nest.combinedLanes);
  if (nest.combinedWarps > 1)
    cycles += 2 * costs.barrierCycles + target.gpu.sharedCycles + nest.combinedWarps * kSchedulers;
  return cycles * nest.accumulators;
}

/// Returns the cycles in which a scheduler issues a special function of a warp.
double specialCycles(const Target &target) {
  return static_cast<double>(kSchedulers * target.gpu.warpLanes) / target.costs.gpu.specialLanes;
}

double nestCycles(const NestWork &nest, const BlockWork &work, const Target &target, double warpsPerScheduler) {
  const GpuLimits &gpu = target.gpu;
  const GpuCosts &costs = target.costs.gpu;
  double waits = std::ceil(nest.turns / costs.loadsInFlight);
  double latency = nest.globalLoads > 0 ? gpu.dramCycles : nest.sharedLoads > 0 ? gpu.sharedCycles : 0;
  double cycles = costs.lightCycles * nest.instructions + specialCycles(target) * nest.special +
                  costs.memoryCycles * (nest.globalPasses * nest.globalLoads + nest.sharedPasses * nest.sharedLoads);
  double issued = nest.turns * cycles * warpsPerScheduler;
  double barrier = work.warpPrivate ? 1 : costs.barrierCycles;
  return waits * latency + issued + combineCycles(nest, target) + barrier;
}

/// Returns the seconds the L2 takes to deliver the bytes that blocks request, through the ports of the SMs that have a
/// block.
double cacheSeconds(const BlockWork &work, const Target &target) {
  auto cache = find_if(target.levels, [](const MemoryLevel &level) { return level.space == tile::Space::global; });
  double ports = std::min(work.blocks, target.cores) * target.costs.gpu.portBytes * target.gpu.clockHz;
  return std::max(work.bytes, work.movedBytes) / std::min(cache->bandwidth, ports);
}
} // namespace

BlockLatency tilewright::blockLatency(const BlockWork &work, const Target &target) {
  const GpuLimits &gpu = target.gpu;
  BlockLatency latency;
  latency.residentBlocks = residentBlocks(gpu, work.threads, work.sharedBytes, work.registers);
  if (work.mostResident > 0)
    latency.residentBlocks = std::min(latency.residentBlocks, work.mostResident);
  if (latency.residentBlocks == 0) {
    latency.seconds = std::numeric_limits<double>::infinity();
    return latency;
  }
  double slots = static_cast<double>(latency.residentBlocks) * target.cores;
  latency.waves = std::ceil(work.blocks / slots);
  double perSm = std::min<double>(latency.residentBlocks, std::ceil(static_cast<double>(work.blocks) / target.cores));
  double warpsPerScheduler = std::max(1.0, perSm * work.threads / gpu.warpLanes / kSchedulers);
  latency.warpCycles = target.costs.gpu.startCycles;
  for (const NestWork &nest : work.nests)
    latency.warpCycles += nestCycles(nest, work, target, warpsPerScheduler);
  // Little's law: bandwidth is reached only if enough bytes are in flight while one access waits for DRAM.
  const MemoryLevel &memory = target.level(tile::Space::global);
  double turns = 1;
  bool loads = false; // a kernel that only stores waits for nothing
  for (const NestWork &nest : work.nests)
    if (nest.globalLoads > 0) {
      turns = std::max(turns, std::min(nest.turns, target.costs.gpu.loadsInFlight));
      loads = true;
    }
  double requestedBytes = std::min<double>(work.blocks, slots) * work.threads * turns * work.accessBytes;
  latency.inFlight = loads ? std::min(1.0, requestedBytes / (memory.bandwidth * gpu.dramCycles / gpu.clockHz)) : 1;
  latency.seconds =
      std::max({latency.waves * latency.warpCycles / gpu.clockHz,
                work.bytes / memory.bandwidth / std::max(latency.inFlight, 1e-3), cacheSeconds(work, target)});
  return latency;
}
