// Adds up the cycles of a warp over its loop nests: the latency of loads, instructions by class, and combining
// accumulators. A kernel takes the longest of the waves of blocks times those cycles, its DRAM bytes at the rate that
// Little's law allows, and its L2 traffic through the ports of the SMs.
#include "passes/cost/BlockLatency.h"

using namespace llvm;
using namespace tilewright;

namespace {
/// Cycles of a shuffle until its result is there, and of a block's barrier without contention.
constexpr double kShuffleCycles = 25, kBarrierCycles = 30;
/// Cycles of a scheduler per light and per special warp instruction, as for kMemoryCycles.
constexpr double kLightCycles = 1, kSpecialCycles = 8;
constexpr double kLoadsInFlight = 4; ///< loads of a thread in flight, from independent turns
constexpr double kStartCycles = 500; ///< cycles to begin a block: parameters, indices, first addresses

double combineCycles(const NestWork &nest, const GpuLimits &gpu) {
  double cycles = kShuffleCycles * Log2_64_Ceil(nest.combinedLanes);
  if (nest.combinedWarps > 1)
    cycles += 2 * kBarrierCycles + gpu.sharedCycles + nest.combinedWarps * kSchedulers;
  return cycles * nest.accumulators;
}

double nestCycles(const NestWork &nest, const BlockWork &work, const GpuLimits &gpu, double warpsPerScheduler) {
  double waits = std::ceil(nest.turns / kLoadsInFlight);
  double latency = nest.globalLoads > 0 ? gpu.dramCycles : nest.sharedLoads > 0 ? gpu.sharedCycles : 0;
  double cycles = kLightCycles * nest.instructions + kSpecialCycles * nest.special +
                  kMemoryCycles * (nest.globalPasses * nest.globalLoads + nest.sharedPasses * nest.sharedLoads);
  double issued = nest.turns * cycles * warpsPerScheduler;
  double barrier = work.warpPrivate ? 1 : kBarrierCycles;
  return waits * latency + issued + combineCycles(nest, gpu) + barrier;
}

/// Returns the seconds the L2 takes to deliver the bytes that blocks request, through the ports of the SMs that have a
/// block.
double cacheSeconds(const BlockWork &work, const Target &target) {
  auto cache = find_if(target.levels, [](const MemoryLevel &level) { return level.space == tile::Space::global; });
  double ports = std::min(work.blocks, target.cores) * kPortBytes * target.gpu.clockHz;
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
  latency.warpCycles = kStartCycles;
  for (const NestWork &nest : work.nests)
    latency.warpCycles += nestCycles(nest, work, gpu, warpsPerScheduler);
  // Little's law: bandwidth is reached only if enough bytes are in flight while one access waits for DRAM.
  const MemoryLevel &memory = target.level(tile::Space::global);
  double turns = 1;
  bool loads = false; // a kernel that only stores waits for nothing
  for (const NestWork &nest : work.nests)
    if (nest.globalLoads > 0) {
      turns = std::max(turns, std::min(nest.turns, kLoadsInFlight));
      loads = true;
    }
  double requestedBytes = std::min<double>(work.blocks, slots) * work.threads * turns * work.accessBytes;
  latency.inFlight = loads ? std::min(1.0, requestedBytes / (memory.bandwidth * gpu.dramCycles / gpu.clockHz)) : 1;
  latency.seconds =
      std::max({latency.waves * latency.warpCycles / gpu.clockHz,
                work.bytes / memory.bandwidth / std::max(latency.inFlight, 1e-3), cacheSeconds(work, target)});
  return latency;
}
