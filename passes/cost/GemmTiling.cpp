// Chooses the grid of units, then the step along K, then the number of stages. The limits are the accumulators per
// thread, idle threads, and the bytes of shared memory.
#include "passes/cost/GemmTiling.h"

#include "passes/cost/BufferLines.h"
#include "passes/target/AccessBytes.h"
#include "passes/target/Warpgroups.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace tilewright;

namespace {
constexpr int64_t kPanelBytes = 128;        ///< bytes of a warpgroup's line, which is the line of the widest swizzle
constexpr int64_t kSharedStepBytes = 64;    ///< bytes of a line per unit, if units slice K or are single threads
constexpr int64_t kThreadAccumulators = 64; ///< leave registers for the operands
constexpr int64_t kWarpAccumulators = 128;  ///< more, because a warp's step keeps operands packed
constexpr int64_t kRegisterBytes = 4;
constexpr int64_t kOtherRegisters = 64;
constexpr int64_t kQuad = 4;              ///< threads that hold one row of a warp's accumulators
constexpr int64_t kInstructionBytes = 32; ///< bytes along K that a warp instruction takes
constexpr int64_t kSlotAlignment = 128;
constexpr int64_t kPanelAlignment = 1024; ///< period of the widest swizzle, in bytes
constexpr int64_t kPanelStages = 4;
constexpr int64_t kGroupN = 256;                ///< largest N of a warpgroup instruction
constexpr int64_t kMostPanelBytes = 192 * 1024; ///< slots of a block that is alone on its SM
constexpr int64_t kMostSlotBytes = 96 * 1024;   ///< slots of any other block; whole rows leave room for buffers
constexpr int64_t kMostStages = 5;
constexpr int64_t kMostStagesAlone = 12;    ///< for a block that is alone on its SM: latency under load is long
constexpr int64_t kStreamBytes = 48 * 1024; ///< bytes in flight of a block whose units slice K
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

void GemmTiling::keepLhsResident(int64_t k) {
  int64_t steps = llvm::divideCeil(k, step);
  if (kSlices == 1 && steps * lhsSlotBytes <= kMostResidentBytes)
    residentSteps = steps;
}

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

/// With this many registers nothing is spilled, and an assembler that may use more does so. Where the accumulators
/// leave no room for another block anyway, they get as many registers again.
int64_t GemmTiling::registers() const {
  int64_t held = accumulatorRegisters();
  return held + std::max(kOtherRegisters, accumulators > kThreadAccumulators ? held : 0) + operandRegisters(*this);
}

void GemmTiling::print(llvm::raw_ostream &os) const {
  os << m << "x" << n << " accumulators, " << mUnits << "x" << nUnits << " of " << ownM << "x" << ownN
     << (kSlices > 1 ? ", " + std::to_string(kSlices) + " slices of K" : std::string()) << ", " << accumulators
     << " per thread, steps of " << step << " in " << stages << " stages, " << sharedBytes() << " bytes";
}

bool tilewright::canShift(const MicroKernel &kernel) { return kernel.unit == StepUnit::warp && !isOfWarpgroup(kernel); }

std::optional<GemmTiling> tilewright::chooseGemmTiling(const GemmTile &tile, int64_t threads, const MicroKernel &kernel,
                                                       std::string *reason, int64_t kSlices) {
  auto refuse = [&](std::string why) -> std::optional<GemmTiling> {
    if (reason)
      *reason = std::move(why);
    return std::nullopt;
  };
  if (kSlices < 1 || !llvm::isPowerOf2_64(kSlices))
    return refuse("K has to be split into a power of two of slices, not into " + std::to_string(kSlices));
  bool isGroup = isOfWarpgroup(kernel), isWarp = kernel.unit == StepUnit::warp;
  int64_t leastM = isWarp ? kernel.block.rows : 1, leastN = isWarp ? 2 * kernel.block.vectors : 1;
  int64_t lanesOfUnit = threadsOfStep(kernel), units = threads / lanesOfUnit / kSlices;
  if (isGroup && (kSlices > 1 || threads % lanesOfUnit != 0))
    return refuse("warpgroups take blocks of a multiple of 128 threads and do not slice K; the block has " +
                  std::to_string(threads) + " threads, K has slices: " + std::to_string(kSlices));
  if (units == 0)
    return refuse(std::to_string(threads) + " threads are too few for slices of K: " + std::to_string(kSlices));
  GemmTiling best;
  best.m = llvm::PowerOf2Ceil(std::max(tile.m, leastM));
  best.n = llvm::PowerOf2Ceil(std::max(tile.n, leastN));
  // Warpgroups share panels and do not cut them.
  int64_t ownN = isGroup ? std::max(leastN, std::min(best.n, kPanelBytes / tile.rhsBytes)) : leastN;
  // Prefer the fewest accumulators per thread, then the shape nearest to a square, which loads least per multiply-add.
  // A warpgroup instruction has an M of 64 and takes its whole N at once.
  auto rank = [&](const GemmTiling &tiling) {
    return std::pair(tiling.accumulators, tiling.ownM + (isGroup ? 0 : tiling.ownN));
  };
  for (int64_t mUnits = 1; mUnits <= std::min(units, best.m / leastM); mUnits *= 2) {
    GemmTiling tiling = best;
    tiling.mUnits = mUnits;
    tiling.nUnits = std::min(units / mUnits, best.n / ownN);
    tiling.ownM = best.m / mUnits;
    tiling.ownN = best.n / tiling.nUnits;
    tiling.accumulators = tiling.ownM * tiling.ownN / lanesOfUnit;
    if (best.accumulators == 0 || rank(tiling) < rank(best))
      best = tiling;
  }
  int64_t most = isWarp ? kWarpAccumulators : kThreadAccumulators;
  if (best.accumulators > most)
    return refuse("a tile of " + std::to_string(tile.m) + "x" + std::to_string(tile.n) + " needs " +
                  std::to_string(best.accumulators) + " accumulators in each of " + std::to_string(threads) +
                  " threads, which hold " + std::to_string(most));
  if ((isGroup || kSlices > 1) && best.mUnits * best.nUnits != units)
    return refuse("a tile of " + std::to_string(tile.m) + "x" + std::to_string(tile.n) + " leaves threads idle in " +
                  (isGroup ? "warpgroups" : std::to_string(kSlices) + " slices of K"));
  int64_t wide = std::max(tile.lhsBytes, tile.rhsBytes), narrow = std::min(tile.lhsBytes, tile.rhsBytes);
  int64_t least = std::max(kAtomBytes / narrow, isWarp ? kernel.depth : 1);
  int64_t needed = llvm::PowerOf2Ceil(std::max<int64_t>(tile.k, 1));
  best.kSlices = kSlices;
  int64_t stepBytes = isGroup ? kPanelBytes : isWarp && kSlices == 1 ? kStepBytes : kSharedStepBytes;
  best.step = std::max(least, std::min(kSlices * stepBytes / wide, needed));
  if (best.step < kSlices * least)
    return refuse("a K of " + std::to_string(tile.k) + " is too short for " + std::to_string(kSlices) + " slices");
  best.heldM =
      std::min(best.m, std::max<int64_t>(llvm::PowerOf2Ceil(tile.m), tile.lhsAlongK ? 1 : kAtomBytes / tile.lhsBytes));
  if (isGroup)
    best.heldM = best.m;        // descriptors address all rows
  best.stages = isWarp ? 3 : 2; // at least
  // Warps read at least one atom of an operand whose K is not contiguous, and so do threads of the rows of lhs.
  int64_t lhsLine = tile.lhsAlongK ? best.heldM : std::max(best.heldM, kAtomBytes / tile.lhsBytes);
  best.rhsLine = isWarp ? std::max(best.n, kAtomBytes / tile.rhsBytes) : best.n;
  best.lhsShifted = canShift(kernel) && tile.lhsShifted;
  best.rhsShifted = canShift(kernel) && tile.rhsShifted;
  auto setSlots = [&] {
    int64_t alignment = isGroup ? kPanelAlignment : kSlotAlignment;
    int64_t lhsBytes = lhsLine * best.step * tile.lhsBytes, rhsBytes = best.rhsLine * best.step * tile.rhsBytes;
    if (best.lhsShifted)
      lhsBytes += (tile.lhsAlongK ? best.heldM : best.step) * kAtomBytes;
    if (best.rhsShifted)
      rhsBytes += (tile.rhsAlongK ? best.n : best.step) * kAtomBytes;
    best.lhsSlotBytes = llvm::alignTo(lhsBytes, alignment);
    best.rhsSlotBytes = llvm::alignTo(rhsBytes, alignment);
  };
  // With so many accumulators per thread a block is alone on its SM. Blocks of whole rows still leave room for buffers.
  bool isAlone = isGroup && best.accumulators > kThreadAccumulators && best.n <= kGroupN;
  int64_t mostBytes = isAlone ? kMostPanelBytes : kMostSlotBytes;
  for (setSlots(); best.sharedBytes() > mostBytes && best.step > kSlices * least; setSlots())
    best.step /= 2;
  // More stages than steps would be of no use: the copies of the next contraction begin while this one is multiplied,
  // one per step.
  int64_t steps = llvm::divideCeil(tile.k, best.step);
  int64_t mostStages = isGroup ? kPanelStages : std::min(isWarp ? kMostStages : kPanelStages, steps);
  int64_t inFlightBytes = mostBytes;
  if (tile.alone && isWarp) {
    mostStages = std::min(kMostStagesAlone, steps);
    inFlightBytes = isGroup ? kMostPanelBytes : mostBytes;
  } else if (kSlices > 1) {
    mostStages = kMostStages;
    inFlightBytes = kStreamBytes;
  }
  best.stages = std::clamp(inFlightBytes / (best.lhsSlotBytes + best.rhsSlotBytes), best.stages,
                           std::max(best.stages, mostStages));
  best.overlaps = isGroup && best.stages >= kPanelStages; // with fewer stages, all are needed for copies in flight
  best.loadsOperands = !isGroup;
  best.accumulatorThreads = best.mUnits * best.nUnits * lanesOfUnit;
  best.accumulatorBytes = std::max({best.accumulatorBytes, tile.lhsBytes, tile.rhsBytes});
  return best;
}

std::string tilewright::labelWithKSlices(llvm::StringRef label, int64_t kSlices) {
  return label.str() + (kSlices > 1 ? "k" + std::to_string(kSlices) : "");
}

int64_t tilewright::kSlicesOf(llvm::StringRef label) {
  llvm::StringRef block = label.rsplit('-').second;
  int64_t units = 1;
  size_t mark = block.rfind('k');
  if (mark == llvm::StringRef::npos || block.substr(mark + 1).getAsInteger(10, units))
    return 1;
  return units;
}
