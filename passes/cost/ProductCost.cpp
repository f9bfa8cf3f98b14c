// Counts the cycles of each resource (multiply-add units, L2 port, shared memory, issue slots for copies), takes the
// largest, and adds what does not overlap: the barrier of each step, and combining accumulators at the end.
#include "passes/cost/ProductCost.h"

#include "passes/cost/BlockLatency.h"
#include "passes/target/Warpgroups.h"

using namespace tilewright;

namespace {
/// Returns the threads of one warp for each scheduler of an SM.
double schedulerThreads(const Target &target) { return static_cast<double>(kSchedulers * target.gpu.warpLanes); }

class ProductCycles {
public:
  ProductCycles(const ProductWork &work, const GemmTiling &tiling, const Occupancy &occupancy, const Target &target)
      : work(work), tiling(tiling), occupancy(occupancy), target(target), costs(target.costs.gpu),
        steps(work.times * std::ceil(work.k / static_cast<double>(tiling.step))) {}

  double cycles() const { return std::max(busyCycles(), waitCycles()) + combineCycles(); }

private:
  bool isWarps() const { return work.kernel.unit == StepUnit::warp && tiling.loadsOperands; }

  double busyCycles() const {
    double multiply = multiplyCycles(), read = sharedMemoryCycles(), chain = 0;
    double most = std::max({multiply, l2Cycles(), read, copyCycles()});
    if (isWarps()) { // a warp multiplies right after it reads; a warpgroup's instruction does both itself
      most = std::max(most, costs.readThenMultiply * (read + multiply));
      chain = chainCycles();
    }
    return std::max(occupancy.together * most, chain) + steps * costs.stepCycles;
  }

  /// Cycles of the multiply-adds. Each scheduler has units of its own, which are idle unless one of its warps has
  /// accumulators.
  double multiplyCycles() const {
    const MicroKernel &kernel = work.kernel;
    bool isSlow = kernel.unit == StepUnit::warp && !isOfWarpgroup(kernel) && target.has(kWarpgroupFeature);
    double share = kernel.unit == StepUnit::thread ? threadShare() : isSlow ? costs.mmaSyncPeak : 1;
    double speed = kernel.speed * share;
    double perSm = target.flopsPerSecond / 2 * speed / target.cores / target.gpu.clockHz;
    double threads = static_cast<double>(std::min(occupancy.threads, tiling.accumulatorThreads * tiling.kSlices));
    double scheduled = std::min(1.0, occupancy.together * threads / schedulerThreads(target));
    return work.times * static_cast<double>(tiling.m * tiling.n) * work.k / (perSm * scheduled);
  }

  /// Returns the share of the issue rate that multiply-adds get among all instructions that a thread issues per K.
  double threadShare() const {
    double products = static_cast<double>(tiling.accumulators);
    double loads = static_cast<double>(tiling.ownM + tiling.ownN) / costs.elementsPerLoad;
    return costs.threadIssue * products / (products + loads + costs.instructionsPerK);
  }

  /// Cycles of the dependence chain: a warp's product waits for the previous one into the same accumulators.
  double chainCycles() const {
    return steps * static_cast<double>(tiling.ownK()) / static_cast<double>(work.kernel.depth) * costs.productCycles;
  }

  /// Cycles to fetch the operands from the L2, which all SMs with blocks share, through the SM's own port.
  double l2Cycles() const {
    double sms = std::min<double>(std::ceil(occupancy.blocks / occupancy.together), target.cores);
    return work.bytes * std::max(sms * target.gpu.clockHz / l2Bandwidth(target), 1 / costs.portBytes);
  }

  /// Cycles of shared memory: reading operands, adding up the accumulators of K slices, and writing copies.
  double sharedMemoryCycles() const {
    double units = work.kernel.unit == StepUnit::thread
                       ? static_cast<double>(occupancy.threads) * costs.readOnce
                       : static_cast<double>(occupancy.threads / threadsOfStep(work.kernel));
    // Each instruction of a warpgroup reads rhs again.
    int64_t again = isOfWarpgroup(work.kernel) ? tiling.ownM / kWarpgroupBlock.rows : 1;
    double bytes = work.times * units * work.k *
                   static_cast<double>(tiling.ownM * work.lhsBytes + again * tiling.ownN * work.rhsBytes) /
                   static_cast<double>(tiling.kSlices);
    if (roundsInSharedMemory(work.kernel))
      bytes += 2 * work.times * work.k * static_cast<double>(tiling.m * work.lhsBytes + tiling.n * work.rhsBytes);
    double added = 2.0 * static_cast<double>((tiling.kSlices - 1) * tiling.accumulatorThreads * tiling.accumulators *
                                             tiling.accumulatorBytes);
    return (bytes + added + work.bytes) / costs.bankBytes;
  }

  double copyCycles() const {
    double copies = static_cast<double>(tiling.heldM) * work.lhsCopies + static_cast<double>(tiling.n) * work.rhsCopies;
    return work.times * work.k * copies /
           issuedLanes(occupancy.together * static_cast<double>(occupancy.threads), target);
  }

  /// Cycles spent waitCycles for copies that the steps in flight do not cover. Blocks that read the same data do so at
  /// the same time, so it comes from DRAM for all of them.
  double waitCycles() const {
    double found = costs.latencyUnderLoad * target.gpu.dramCycles, ahead = static_cast<double>(tiling.stepsInFlight());
    return (work.prefetched ? 0 : found) + std::max(0.0, steps - ahead) * found / ahead;
  }

  /// Cycles to combine accumulators: the units that end up with the result add those of the other K slices one after
  /// another, and rows may be combined across warps.
  double combineCycles() const {
    double cycles = 0;
    if (tiling.kSlices > 1)
      cycles += 2 * target.barrierSeconds * target.gpu.clockHz +
                occupancy.together * work.times * costs.addedCycles *
                    static_cast<double>((tiling.kSlices - 1) * tiling.accumulators);
    if (work.combinesRows && tiling.nUnits > 1) // once for a maximum and once for a sum
      cycles += work.times * 2 * costs.combineCycles;
    return cycles;
  }

  const ProductWork &work;
  const GemmTiling &tiling;
  const Occupancy &occupancy;
  const Target &target;
  const GpuCosts &costs;
  double steps;
};
} // namespace

double tilewright::productSeconds(const ProductWork &work, const GemmTiling &tiling, const Occupancy &occupancy,
                                  const Target &target) {
  return ProductCycles(work, tiling, occupancy, target).cycles() / target.gpu.clockHz;
}

double tilewright::streamSeconds(double bytes, const GemmTiling &tiling, double blocks, const Target &target) {
  const GpuCosts &costs = target.costs.gpu;
  double sms = std::min<double>(blocks, target.cores);
  double bytesInFlight = blocks / sms * static_cast<double>(tiling.stepsInFlight() * tiling.rhsSlotBytes);
  double perSm =
      std::min(costs.portBytes, bytesInFlight / (costs.latencyUnderLoad * target.gpu.dramCycles)) * target.gpu.clockHz;
  double uneven = std::ceil(blocks / sms) * sms / blocks - 1; // some SMs have one block more than the others
  return (1 + costs.unevenIdle * uneven) * bytes / std::min(target.levels.back().bandwidth, sms * perSm);
}

double tilewright::issuedLanes(double threads, const Target &target) {
  const GpuCosts &costs = target.costs.gpu;
  double warps = threads / schedulerThreads(target); // per scheduler
  return costs.issueLanes *
         (costs.firstWarpIssue * std::min(1.0, warps) + costs.otherWarpIssue * std::max(0.0, warps - 1));
}

double tilewright::l2Bandwidth(const Target &target) {
  for (const MemoryLevel &level : target.levels)
    if (level.space == tile::Space::global)
      return level.bandwidth; // levels are ordered innermost first
  return target.levels.back().bandwidth;
}
