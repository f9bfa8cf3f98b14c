#include "passes/cost/ProductCost.h"

#include "passes/cost/BlockLatency.h"
#include "passes/target/Warpgroups.h"

using namespace tilewright;

namespace {
constexpr double kLoaded = 2.3;              ///< of the latency of one load alone, where all SMs load
constexpr double kOneAfterOther = 0.75;      ///< of reading factors and multiplying them, where some of both overlaps
constexpr double kProductCycles = 35;        ///< of a warp's instruction, until its sums are there
constexpr double kStepCycles = 70;           ///< of a step, at its barrier and until its first factors are there
constexpr double kAddedCycles = 8;           ///< of a thread, to add a sum of another unit
constexpr double kCombineCycles = 225;       ///< to combine rows of several warps through shared memory
constexpr double kUneven = 0.25;             ///< of what SMs have less than others that DRAM has nothing to do for
constexpr double kReadOnce = 0.5;            ///< of what threads read from shared memory, the rest is broadcast
constexpr double kSchedulerThreads = 4 * 32; ///< of a warp for each scheduler of an SM
constexpr double kLanes = 128;               ///< light instructions of an SM in a cycle, at best ...
constexpr double kIssuedOfFirst = 0.45, kIssuedOfOthers = 0.05; ///< ... of those, what warps of a scheduler issue
// mma.sync on an H100: Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture" (2024).
constexpr double kSingleWarpShare = 0.63;
constexpr double kThreadShare = 0.64; ///< of the issue slots, what single threads use that load and multiply
constexpr double kAtomFactors = 4, kTermInstructions = 2; ///< factors of a load; instructions of a term beside

class ProductCycles {
public:
  ProductCycles(const ProductWork &work, const GemmTiling &tiling, const Occupancy &occupancy, const Target &target)
      : work(work), tiling(tiling), occupancy(occupancy), target(target),
        steps(work.times * std::ceil(work.terms / static_cast<double>(tiling.step))) {}

  double all() const { return std::max(busy(), waiting()) + meeting(); }

private:
  bool isWarps() const { return work.kernel.unit == StepUnit::warp && tiling.loadsFactors; }

  double busy() const {
    double multiplied = multiplying(), read = banks(), chain = 0;
    double most = std::max({multiplied, taking(), read, copying()});
    if (isWarps()) { // what a warp reads it multiplies at once; warpgroups' instructions do both by themselves
      most = std::max(most, kOneAfterOther * (read + multiplied));
      chain = chained();
    }
    return std::max(occupancy.together * most, chain) + steps * kStepCycles;
  }

  /// Each scheduler has units of its own, which wait for a warp of its own that has sums.
  double multiplying() const {
    const MicroKernel &kernel = work.kernel;
    bool isSlow = kernel.unit == StepUnit::warp && !isOfWarpgroup(kernel) && target.has(kWarpgroupFeature);
    double share = kernel.unit == StepUnit::thread ? threadShare() : isSlow ? kSingleWarpShare : 1;
    double speed = kernel.speed * share;
    double ofSm = target.flopsPerSecond / 2 * speed / target.cores / target.gpu.clockHz;
    double threads = static_cast<double>(std::min(occupancy.threads, tiling.accumulatorThreads * tiling.kSlices));
    double scheduled = std::min(1.0, occupancy.together * threads / kSchedulerThreads);
    return work.times * static_cast<double>(tiling.rows * tiling.lanes) * work.terms / (ofSm * scheduled);
  }

  /// Of the lanes' rate, what products of a thread take of all that it issues for a term.
  double threadShare() const {
    double products = static_cast<double>(tiling.sums);
    double loads = static_cast<double>(tiling.ownRows + tiling.ownLanes) / kAtomFactors;
    return kThreadShare * products / (products + loads + kTermInstructions);
  }

  /// One product of a warp waits for the one before that is added to the same sums.
  double chained() const {
    return steps * static_cast<double>(tiling.ownK()) / static_cast<double>(work.kernel.depth) * kProductCycles;
  }

  /// From L2, which all SMs with blocks share, through a port of the SM's own.
  double taking() const {
    double sms = std::min<double>(std::ceil(occupancy.blocks / occupancy.together), target.cores);
    return work.bytes * std::max(sms * target.gpu.clockHz / l2Bandwidth(target), 1 / kPortBytes);
  }

  /// Of shared memory: what is read to be multiplied, what units add up, and copies, which are written.
  double banks() const {
    double units = work.kernel.unit == StepUnit::thread
                       ? static_cast<double>(occupancy.threads) * kReadOnce
                       : static_cast<double>(occupancy.threads / threadsOfStep(work.kernel));
    // Each instruction of a warpgroup reads its lanes anew.
    int64_t again = isOfWarpgroup(work.kernel) ? tiling.ownRows / kWarpgroupBlock.rows : 1;
    double bytes = work.times * units * work.terms *
                   static_cast<double>(tiling.ownRows * work.rowBytes + again * tiling.ownLanes * work.laneBytes) /
                   static_cast<double>(tiling.kSlices);
    if (roundsInSharedMemory(work.kernel))
      bytes += 2 * work.times * work.terms *
               static_cast<double>(tiling.rows * work.rowBytes + tiling.lanes * work.laneBytes);
    double added =
        2.0 * static_cast<double>((tiling.kSlices - 1) * tiling.accumulatorThreads * tiling.sums * tiling.accumulatorBytes);
    return (bytes + added + work.bytes) / kBankBytes;
  }

  double copying() const {
    double copies =
        static_cast<double>(tiling.heldRows) * work.rowCopies + static_cast<double>(tiling.lanes) * work.laneCopies;
    return work.times * work.terms * copies / issuedLanes(occupancy.together * static_cast<double>(occupancy.threads));
  }

  /// Each step waits for its copies if those behind it do not cover that. Blocks that read the same do so at the same
  /// time: it comes from DRAM for all of them.
  double waiting() const {
    double found = kLoaded * target.gpu.dramCycles, ahead = static_cast<double>(tiling.stepsInFlight());
    return (work.begun ? 0 : found) + std::max(0.0, steps - ahead) * found / ahead;
  }

  /// Of units that share the terms: those that have the sums in the end add the others' one after another.
  double meeting() const {
    double cycles = 0;
    if (tiling.kSlices > 1)
      cycles +=
          2 * target.barrierSeconds * target.gpu.clockHz +
          occupancy.together * work.times * kAddedCycles * static_cast<double>((tiling.kSlices - 1) * tiling.sums);
    if (work.combinesRows && tiling.laneUnits > 1) // for a maximum and for a sum
      cycles += work.times * 2 * kCombineCycles;
    return cycles;
  }

  const ProductWork &work;
  const GemmTiling &tiling;
  const Occupancy &occupancy;
  const Target &target;
  double steps;
};
} // namespace

double tilewright::productSeconds(const ProductWork &work, const GemmTiling &tiling, const Occupancy &occupancy,
                                  const Target &target) {
  return ProductCycles(work, tiling, occupancy, target).all() / target.gpu.clockHz;
}

double tilewright::streamSeconds(double bytes, const GemmTiling &tiling, double blocks, const Target &target) {
  double sms = std::min<double>(blocks, target.cores);
  double onTheirWay = blocks / sms * static_cast<double>(tiling.stepsInFlight() * tiling.laneSlotBytes);
  double ofSm = std::min(kPortBytes, onTheirWay / (kLoaded * target.gpu.dramCycles)) * target.gpu.clockHz;
  double uneven = std::ceil(blocks / sms) * sms / blocks - 1; // some have a block more than the others
  return (1 + kUneven * uneven) * bytes / std::min(target.levels.back().bandwidth, sms * ofSm);
}

double tilewright::issuedLanes(double threads) {
  double warps = threads / kSchedulerThreads; // of a scheduler
  return kLanes * (kIssuedOfFirst * std::min(1.0, warps) + kIssuedOfOthers * std::max(0.0, warps - 1));
}

double tilewright::l2Bandwidth(const Target &target) {
  for (const MemoryLevel &level : target.levels)
    if (level.space == tile::Space::global)
      return level.bandwidth; // innermost first
  return target.levels.back().bandwidth;
}
