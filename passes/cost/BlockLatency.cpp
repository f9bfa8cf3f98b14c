#include "passes/cost/BlockLatency.h"

using namespace llvm;
using namespace tilewright;

namespace {
constexpr double kShuffleCycles = 25,
                 kBarrierCycles = 30; ///< an instruction and its result; a block's barrier, unloaded
constexpr int64_t kSchedulers = 4;    ///< of an SM: each issues one instruction a cycle, and has its share of registers
/// Cycles of a scheduler for an instruction of a warp, by class, from the throughputs per SM of CUDA's programming
/// guide: 128 light ones a cycle, 32 accesses to memory, 16 special functions.
constexpr double kLightCycles = 1, kMemoryCycles = 4, kSpecialCycles = 8;
constexpr double kLoadsInFlight = 4; ///< of a thread, of independent turns
constexpr double kStartCycles = 500; ///< to begin a block: parameters, indices, first addresses
constexpr int64_t kRegisterUnit = 8; ///< registers of a thread are allocated by this many
constexpr int64_t kSharedUnit = 128; ///< ... and bytes of shared memory of a block

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

/// What the level nearest to the SMs takes to hand over what blocks ask it for, through the ports of those SMs that
/// have a block.
double cacheSeconds(const BlockWork &work, const Target &target) {
  auto cache = find_if(target.levels, [](const MemoryLevel &level) { return level.space == tile::Space::global; });
  double ports = std::min(work.blocks, target.cores) * kPortBytes * target.gpu.clockHz;
  return std::max(work.bytes, work.movedBytes) / std::min(cache->bandwidth, ports);
}
} // namespace

int64_t tilewright::residentBlocks(const GpuLimits &gpu, int64_t threads, int64_t sharedBytes, int64_t registers) {
  int64_t perThread = alignTo(std::max<int64_t>(registers, 1), kRegisterUnit);
  int64_t ofScheduler = gpu.registersPerSm / kSchedulers / (perThread * gpu.warpLanes); // warps
  int64_t byThreads = gpu.threadsPerSm / threads;
  int64_t byRegisters = kSchedulers * ofScheduler / divideCeil(threads, gpu.warpLanes);
  int64_t ofBlock = alignTo(std::max<int64_t>(sharedBytes + gpu.reservedSharedBytes, 1), kSharedUnit);
  int64_t byShared = gpu.sharedBytesPerSm / ofBlock;
  return std::min({gpu.blocksPerSm, byThreads, byRegisters, byShared});
}

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
  // Little's law: what is on its way while one access waits for DRAM.
  const MemoryLevel &memory = target.level(tile::Space::global);
  double turns = 1;
  bool loads = false; // who only stores waits for nothing
  for (const NestWork &nest : work.nests)
    if (nest.globalLoads > 0) {
      turns = std::max(turns, std::min(nest.turns, kLoadsInFlight));
      loads = true;
    }
  double asked = std::min<double>(work.blocks, slots) * work.threads * turns * work.accessBytes;
  latency.inFlight = loads ? std::min(1.0, asked / (memory.bandwidth * gpu.dramCycles / gpu.clockHz)) : 1;
  latency.seconds =
      std::max({latency.waves * latency.warpCycles / gpu.clockHz,
                work.bytes / memory.bandwidth / std::max(latency.inFlight, 1e-3), cacheSeconds(work, target)});
  return latency;
}
