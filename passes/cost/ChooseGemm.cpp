// The limits are the accumulators per thread, idle threads, and the bytes of shared memory.
#include "passes/cost/ChooseGemm.h"

#include "passes/target/Warpgroups.h"
#include "llvm/Support/MathExtras.h"

using namespace tilewright;

namespace {
constexpr int64_t kGroupN = 256; ///< largest N of a warpgroup instruction
} // namespace

/// Chooses the grid of units. Prefers the fewest accumulators per thread, then the shape nearest to a square, which
/// loads least per multiply-add. A warpgroup instruction has an M of 64 and takes its whole N at once.
static void chooseUnits(const GemmTile &tile, int64_t units, const MicroKernel &kernel, GemmChoice &choice) {
  LeastUnit least = leastUnit(tile, kernel);
  int64_t m = llvm::PowerOf2Ceil(std::max(tile.m, least.m)), n = llvm::PowerOf2Ceil(std::max(tile.n, least.n));
  std::pair<int64_t, int64_t> best{0, 0};
  for (int64_t mUnits = 1; mUnits <= std::min(units, m / least.m); mUnits *= 2) {
    int64_t nUnits = std::min(units / mUnits, n / least.n), ownM = m / mUnits, ownN = n / nUnits;
    std::pair rank(ownM * ownN, ownM + (isOfWarpgroup(kernel) ? 0 : ownN));
    if (best.first == 0 || rank < best) {
      best = rank;
      choice.m = mUnits;
      choice.n = nUnits;
    }
  }
}

/// Chooses the stages of a layout. More stages than steps would be of no use: the copies of the next contraction begin
/// while this one is multiplied, one per step.
static int64_t chooseStages(const GemmTile &tile, const GemmTiling &tiling, const MicroKernel &kernel, GemmUse use,
                            int64_t mostBytes, const GpuCosts &costs) {
  bool isGroup = isOfWarpgroup(kernel), isWarp = kernel.unit == StepUnit::warp;
  int64_t steps = llvm::divideCeil(tile.k, tiling.step), inFlightBytes = mostBytes;
  int64_t most = isGroup ? costs.panelStages : std::min(isWarp ? costs.usualStages : costs.panelStages, steps);
  if (use.alone && isWarp) { // latency under load is long
    most = std::min(costs.mostStages, steps);
    inFlightBytes = isGroup ? costs.aloneSlotBytes : mostBytes;
  } else if (use.kSlices > 1) {
    most = costs.usualStages;
    inFlightBytes = costs.slicedBytes;
  }
  return std::clamp(inFlightBytes / (tiling.lhsSlotBytes + tiling.rhsSlotBytes), tiling.stages,
                    std::max(tiling.stages, most));
}

OrDeclined<GemmChoice> tilewright::chooseGemm(const GemmTile &tile, int64_t threads, const MicroKernel &kernel,
                                              const GpuCosts &costs, GemmUse use) {
  if (use.kSlices < 1 || !llvm::isPowerOf2_64(use.kSlices))
    return Declined{"K has to be split into a power of two of slices, not into " + std::to_string(use.kSlices),
                    "another number"};
  bool isGroup = isOfWarpgroup(kernel), isWarp = kernel.unit == StepUnit::warp;
  GemmChoice choice;
  choice.kSlices = use.kSlices;
  choice.stages = isWarp ? 3 : 2; // at least
  chooseUnits(tile, std::max<int64_t>(1, threads / threadsOfStep(kernel) / use.kSlices), kernel, choice);
  int64_t wide = std::max(tile.lhsBytes, tile.rhsBytes), least = leastK(tile, kernel);
  int64_t needed = llvm::PowerOf2Ceil(std::max<int64_t>(tile.k, 1));
  int64_t stepBytes = isGroup ? kWarpgroupLineBytes
                      : isWarp && use.kSlices == 1 ? costs.wholeStepBytes
                                                   : costs.stepBytes;
  choice.step = std::max(least, std::min(use.kSlices * stepBytes / wide, needed));
  bool isShort = choice.step < use.kSlices * least;
  choice.step = std::max(choice.step, use.kSlices * least);
  OrDeclined<GemmTiling> tiling = deriveGemmTiling(tile, threads, kernel, choice, costs);
  if (tiling && isShort)
    return Declined{"a K of " + std::to_string(tile.k) + " is too short for " + std::to_string(use.kSlices) + " slices",
                    "fewer slices"};
  // With so many accumulators per thread a block is alone on its SM. Blocks of whole rows still leave room for buffers.
  bool isAlone = tiling && isGroup && tiling->accumulators > costs.threadAccumulators && tiling->n <= kGroupN;
  int64_t mostBytes = isAlone ? costs.aloneSlotBytes : costs.slotBytes;
  while (tiling && tiling->slotBytes() > mostBytes && choice.step > use.kSlices * least) {
    choice.step /= 2;
    tiling = deriveGemmTiling(tile, threads, kernel, choice, costs);
  }
  if (!tiling)
    return tiling.why();
  choice.stages = chooseStages(tile, *tiling, kernel, use, mostBytes, costs);
  return choice;
}

OrDeclined<GemmTiling> tilewright::chooseGemmTiling(const GemmTile &tile, int64_t threads, const MicroKernel &kernel,
                                                    const GpuCosts &costs, GemmUse use) {
  OrDeclined<GemmChoice> choice = chooseGemm(tile, threads, kernel, costs, use);
  return choice ? deriveGemmTiling(tile, threads, kernel, *choice, costs) : choice.why();
}
