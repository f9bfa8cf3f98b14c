// Checks one field of the choice after the other, then adds up bytes.
#include "passes/layout/GemmTiling.h"

#include "passes/target/AccessBytes.h"
#include "passes/target/Warpgroups.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace tilewright;

namespace {
constexpr int64_t kRegisterBytes = 4;
constexpr int64_t kQuad = 4;              ///< threads that hold one row of a warp's accumulators
constexpr int64_t kInstructionBytes = 32; ///< bytes along K that a warp instruction takes
} // namespace

/// Returns the registers for the operands that a thread, or the lanes of a warp together, multiply now and next: one
/// element along K of either operand, or as many as an instruction takes.
static int64_t operandRegisters(const GemmTiling &tiling) {
  if (!tiling.loadsOperands)
    return 0;
  int64_t points = tiling.ownM + tiling.ownN, lanes = tiling.accumulatorThreads / (tiling.mUnits * tiling.nUnits);
  int64_t bytes = lanes == 1 ? points * tiling.accumulatorBytes : points * kInstructionBytes / lanes;
  return 2 * bytes / kRegisterBytes;
}

std::string GemmTiling::whyNotResident(int64_t k, const GpuCosts &costs) const {
  if (kSlices > 1)
    return llvm::formatv("lhs cannot stay resident beside {0} slices of K", kSlices);
  int64_t bytes = llvm::divideCeil(k, step) * lhsSlotBytes;
  if (bytes > costs.residentBytes)
    return llvm::formatv("lhs takes {0} bytes of shared memory in all steps; at most {1} bytes stay resident", bytes,
                         costs.residentBytes);
  return "";
}

void GemmTiling::keepLhsResident(int64_t k) { residentSteps = llvm::divideCeil(k, step); }

void GemmTiling::readLhsInPlace() {
  lhsSlotBytes = 0;
  overlaps = false;
}

int64_t GemmTiling::combiningBytes(int64_t threads, int64_t valueBytes) const {
  bool isThread = accumulatorThreads == mUnits * nUnits;
  int64_t rowsOfThread = accumulators * (isThread ? 1 : kQuad) / ownN;
  return (residentSteps > 0 ? lhsBytes() : 0) + threads * rowsOfThread * valueBytes;
}

int64_t GemmTiling::accumulatorRegisters() const { return accumulators * accumulatorBytes / kRegisterBytes; }

/// With the other registers that the costs name nothing is spilled, and an assembler that may use more does so. Where
/// the accumulators leave no room for another block anyway, they get as many registers again.
int64_t GemmTiling::registers(const GpuCosts &costs) const {
  int64_t held = accumulatorRegisters();
  int64_t others = std::max(costs.otherRegisters, accumulators > costs.threadAccumulators ? held : 0);
  return held + others + operandRegisters(*this);
}

void GemmTiling::print(llvm::raw_ostream &os) const {
  os << m << "x" << n << " accumulators, " << mUnits << "x" << nUnits << " of " << ownM << "x" << ownN
     << (kSlices > 1 ? ", " + std::to_string(kSlices) + " slices of K" : std::string()) << ", " << accumulators
     << " per thread, steps of " << step << " in " << stages << " stages, " << sharedBytes() << " bytes";
}

bool tilewright::canShift(const MicroKernel &kernel) { return kernel.unit == StepUnit::warp && !isOfWarpgroup(kernel); }

/// Warpgroups share panels of rhs and do not cut them.
LeastUnit tilewright::leastUnit(const GemmTile &tile, const MicroKernel &kernel) {
  if (kernel.unit != StepUnit::warp)
    return {1, 1};
  int64_t n = 2 * kernel.block.vectors, all = llvm::PowerOf2Ceil(std::max(tile.n, n));
  if (isOfWarpgroup(kernel))
    n = std::max(n, std::min(all, kWarpgroupLineBytes / tile.rhsBytes));
  return {kernel.block.rows, n};
}

int64_t tilewright::leastK(const GemmTile &tile, const MicroKernel &kernel) {
  int64_t ofAtom = kAtomBytes / std::min(tile.lhsBytes, tile.rhsBytes);
  return std::max(ofAtom, kernel.unit == StepUnit::warp ? kernel.depth : 1);
}

/// Returns why the threads of a block cannot share the tile in this way, or an empty string.
static std::string whyNotShared(const GemmTile &tile, int64_t threads, const MicroKernel &kernel,
                                const GemmTiling &tiling, const GpuCosts &costs) {
  bool isGroup = isOfWarpgroup(kernel);
  int64_t lanesOfUnit = threadsOfStep(kernel), units = threads / lanesOfUnit / tiling.kSlices;
  if (isGroup && (tiling.kSlices > 1 || threads % lanesOfUnit != 0))
    return llvm::formatv("warpgroups take blocks of a multiple of 128 threads and do not slice K; the block has {0} "
                         "threads, K has slices: {1}",
                         threads, tiling.kSlices);
  if (units == 0)
    return llvm::formatv("{0} threads are too few for slices of K: {1}", threads, tiling.kSlices);
  LeastUnit least = leastUnit(tile, kernel);
  if (tiling.mUnits > std::max<int64_t>(1, tiling.m / least.m) ||
      tiling.nUnits > std::max<int64_t>(1, tiling.n / least.n))
    return llvm::formatv("{0}x{1} units cannot share a tile of {2}x{3}: '{4}' takes {5}x{6} at least", tiling.mUnits,
                         tiling.nUnits, tile.m, tile.n, kernel.name, least.m, least.n);
  if (tiling.mUnits * tiling.nUnits > units)
    return llvm::formatv("{0}x{1} units of {2} threads, times {3} slices of K, are more than the {4} threads of a "
                         "block",
                         tiling.mUnits, tiling.nUnits, lanesOfUnit, tiling.kSlices, threads);
  int64_t most = kernel.unit == StepUnit::warp ? costs.warpAccumulators : costs.threadAccumulators;
  if (tiling.accumulators > most)
    return llvm::formatv("a tile of {0}x{1} needs {2} accumulators in each of {3} threads, which hold {4}", tile.m,
                         tile.n, tiling.accumulators, threads, most);
  if ((isGroup || tiling.kSlices > 1) && tiling.mUnits * tiling.nUnits != units)
    return llvm::formatv("a tile of {0}x{1} leaves threads idle in {2}", tile.m, tile.n,
                         isGroup ? "warpgroups" : std::to_string(tiling.kSlices) + " slices of K");
  return "";
}

/// Returns why steps along K cannot have this length or so many stages, or an empty string.
static std::string whyNotInSteps(const GemmTile &tile, const MicroKernel &kernel, const GemmTiling &tiling,
                                 const GpuCosts &costs) {
  int64_t least = tiling.kSlices * leastK(tile, kernel);
  if (tiling.step < least)
    return llvm::formatv("a step of {0} along K is too short: '{1}' takes {2} at least{3}", tiling.step, kernel.name,
                         least, tiling.kSlices > 1 ? llvm::formatv(" in {0} slices", tiling.kSlices).str() : "");
  int64_t line = isOfWarpgroup(kernel) ? kWarpgroupLineBytes : costs.wholeStepBytes;
  int64_t wide = std::max(tile.lhsBytes, tile.rhsBytes);
  int64_t most = std::max(least, tiling.kSlices * line / wide);
  if (tiling.step > most)
    return llvm::formatv("a step of {0} along K is too long: '{1}' takes {2} at most", tiling.step, kernel.name, most);
  if (tiling.stages < 2 || tiling.stages > costs.mostStages)
    return llvm::formatv("{0} stages: a contraction has between 2 and {1}", tiling.stages, costs.mostStages);
  return "";
}

static void setSlots(const GemmTile &tile, const MicroKernel &kernel, GemmTiling &tiling) {
  bool isGroup = isOfWarpgroup(kernel), isWarp = kernel.unit == StepUnit::warp;
  tiling.heldM = std::min(
      tiling.m, std::max<int64_t>(llvm::PowerOf2Ceil(tile.m), tile.lhsAlongK ? 1 : kAtomBytes / tile.lhsBytes));
  if (isGroup)
    tiling.heldM = tiling.m; // descriptors address all rows
  // Warps read at least one atom of an operand whose K is not contiguous, and so do threads of the rows of lhs.
  int64_t lhsLine = tile.lhsAlongK ? tiling.heldM : std::max(tiling.heldM, kAtomBytes / tile.lhsBytes);
  tiling.rhsLine = isWarp ? std::max(tiling.n, kAtomBytes / tile.rhsBytes) : tiling.n;
  tiling.lhsShifted = canShift(kernel) && tile.lhsShifted && tiling.lhsCopy > tile.lhsBytes;
  tiling.rhsShifted = canShift(kernel) && tile.rhsShifted && tiling.rhsCopy > tile.rhsBytes;
  int64_t lhsBytes = lhsLine * tiling.step * tile.lhsBytes, rhsBytes = tiling.rhsLine * tiling.step * tile.rhsBytes;
  if (tiling.lhsShifted)
    lhsBytes += (tile.lhsAlongK ? tiling.heldM : tiling.step) * kAtomBytes;
  if (tiling.rhsShifted)
    rhsBytes += (tile.rhsAlongK ? tiling.n : tiling.step) * kAtomBytes;
  int64_t alignment = isGroup ? kWarpgroupAlignment : GemmTiling::kSlotAlignment;
  tiling.lhsSlotBytes = llvm::alignTo(lhsBytes, alignment);
  tiling.rhsSlotBytes = llvm::alignTo(rhsBytes, alignment);
}

std::string tilewright::whyNoGemm(const GemmChoice &choice) {
  for (auto [name, value] : {std::pair("m", choice.m), std::pair("n", choice.n), std::pair("kSlices", choice.kSlices),
                             std::pair("step", choice.step)})
    if (value < 1 || !llvm::isPowerOf2_64(value))
      return llvm::formatv("{0} must be a power of two, not {1}", name, value);
  for (auto [name, bytes] : {std::pair("lhsCopy", choice.lhsCopy), std::pair("rhsCopy", choice.rhsCopy)})
    if (bytes < 0 || bytes > kAtomBytes || (bytes > 0 && !llvm::isPowerOf2_64(bytes)))
      return llvm::formatv("{0} must be 0 or a power of two of at most {1} bytes, not {2}", name, kAtomBytes, bytes);
  return "";
}

static Declined otherwise(std::string why) { return {std::move(why), "another gemm"}; }

OrDeclined<GemmTiling> tilewright::deriveGemmTiling(const GemmTile &tile, int64_t threads, const MicroKernel &kernel,
                                                    const GemmChoice &choice, const GpuCosts &costs) {
  if (std::string why = whyNoGemm(choice); !why.empty())
    return otherwise(why);
  bool isGroup = isOfWarpgroup(kernel), isWarp = kernel.unit == StepUnit::warp;
  int64_t lanesOfUnit = threadsOfStep(kernel);
  GemmTiling tiling;
  tiling.m = llvm::PowerOf2Ceil(std::max<int64_t>(tile.m, isWarp ? kernel.block.rows : 1));
  tiling.n = llvm::PowerOf2Ceil(std::max<int64_t>(tile.n, isWarp ? 2 * kernel.block.vectors : 1));
  tiling.mUnits = choice.m;
  tiling.nUnits = choice.n;
  tiling.kSlices = choice.kSlices;
  tiling.ownM = tiling.m / choice.m;
  tiling.ownN = tiling.n / choice.n;
  tiling.accumulators = tiling.ownM * tiling.ownN / lanesOfUnit;
  tiling.step = choice.step;
  tiling.stages = choice.stages;
  tiling.lhsCopy = choice.lhsCopy;
  tiling.rhsCopy = choice.rhsCopy;
  if (std::string why = whyNotShared(tile, threads, kernel, tiling, costs); !why.empty())
    return otherwise(why);
  if (std::string why = whyNotInSteps(tile, kernel, tiling, costs); !why.empty())
    return otherwise(why);
  setSlots(tile, kernel, tiling);
  // With fewer stages, all are needed for copies in flight.
  tiling.overlaps = isGroup && tiling.stages >= costs.overlappingStages;
  tiling.loadsOperands = !isGroup;
  tiling.accumulatorThreads = tiling.mUnits * tiling.nUnits * lanesOfUnit;
  tiling.accumulatorBytes = std::max({tiling.accumulatorBytes, tile.lhsBytes, tile.rhsBytes});
  if (choice.lhs == tile::Residency::walk) {
    if (std::string why = tiling.whyNotResident(tile.k, costs); !why.empty())
      return otherwise(why);
    tiling.keepLhsResident(tile.k);
  }
  return tiling;
}
