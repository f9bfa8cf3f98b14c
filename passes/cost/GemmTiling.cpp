#include "passes/cost/GemmTiling.h"

#include "passes/cost/BufferLines.h"
#include "passes/target/Warpgroups.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace tilewright;

namespace {
constexpr int64_t kAtomBytes = 16;       ///< what is loaded from shared memory at once
constexpr int64_t kPanelBytes = 128;     ///< the same for a warpgroup: lines of the widest swizzle
constexpr int64_t kSharedStepBytes = 64; ///< of a line, for a unit: where units share it, and of single threads
constexpr int64_t kThreadAccumulators = 64;      ///< that leave registers for the operands
constexpr int64_t kWarpAccumulators = 128;       ///< the same where a warp's step keeps operands packed
constexpr int64_t kRegisterBytes = 4;
constexpr int64_t kOtherRegisters = 64;
constexpr int64_t kQuad = 4;              ///< threads that have a row of a warp's sums
constexpr int64_t kInstructionBytes = 32; ///< of terms that a warp's instruction takes
constexpr int64_t kSlotAlignment = 128;
constexpr int64_t kPanelAlignment = 1024; ///< after which the widest swizzle repeats
constexpr int64_t kPanelStages = 4;
constexpr int64_t kGroupLanes = 256;            ///< that an instruction of a warpgroup has at most
constexpr int64_t kMostPanelBytes = 192 * 1024; ///< of the steps of a block that has an SM for itself
constexpr int64_t kMostSlotBytes = 96 * 1024;   ///< of all steps together, so that whole rows leave room for buffers
constexpr int64_t kMostStages = 5;
constexpr int64_t kMostStagesAlone = 12;    ///< of a block that has an SM for itself: the latency under load is long
constexpr int64_t kStreamBytes = 48 * 1024; ///< of a block whose units share the terms
} // namespace

/// Of what a thread, or the lanes of a warp together, multiply now and next: a term of either operand, or as many as an
/// instruction takes.
static int64_t factorRegisters(const GemmTiling &tiling) {
  if (!tiling.loadsFactors)
    return 0;
  int64_t points = tiling.ownRows + tiling.ownLanes, lanes = tiling.accumulatorThreads / (tiling.rowUnits * tiling.laneUnits);
  int64_t bytes = lanes == 1 ? points * tiling.accumulatorBytes : points * kInstructionBytes / lanes;
  return 2 * bytes / kRegisterBytes;
}

void GemmTiling::keepRows(int64_t terms) {
  int64_t steps = llvm::divideCeil(terms, step);
  if (kSlices == 1 && steps * rowSlotBytes <= kMostKeptBytes)
    keptSteps = steps;
}

void GemmTiling::readRowsInPlace() {
  rowSlotBytes = 0;
  overlaps = false;
}

int64_t GemmTiling::combiningBytes(int64_t threads, int64_t valueBytes) const {
  bool isThread = accumulatorThreads == rowUnits * laneUnits;
  int64_t rowsOfThread = sums * (isThread ? 1 : kQuad) / ownLanes;
  return (keptSteps > 0 ? rowBytes() : 0) + threads * rowsOfThread * valueBytes;
}

int64_t GemmTiling::accumulatorRegisters() const { return sums * accumulatorBytes / kRegisterBytes; }

/// With so many nothing has to be spilled; an assembler that may take more does so. Where the sums leave no room for
/// another block, there is as much again.
int64_t GemmTiling::registers() const {
  int64_t held = accumulatorRegisters();
  return held + std::max(kOtherRegisters, sums > kThreadAccumulators ? held : 0) + factorRegisters(*this);
}

void GemmTiling::print(llvm::raw_ostream &os) const {
  os << rows << "x" << lanes << " sums by " << rowUnits << "x" << laneUnits << " of " << ownRows << "x" << ownLanes
     << (kSlices > 1 ? " by " + std::to_string(kSlices) + " along the terms" : std::string()) << ", " << sums
     << " a thread, steps of " << step << " in " << stages << " stages, " << sharedBytes() << " bytes";
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
    return refuse("a sum's terms are shared by a power of two, and not by " + std::to_string(kSlices));
  bool isGroup = isOfWarpgroup(kernel), isWarp = kernel.unit == StepUnit::warp;
  int64_t leastRows = isWarp ? kernel.block.rows : 1, leastLanes = isWarp ? 2 * kernel.block.vectors : 1;
  int64_t lanesOfUnit = threadsOfStep(kernel), units = threads / lanesOfUnit / kSlices;
  if (isGroup && (kSlices > 1 || threads % lanesOfUnit != 0))
    return refuse("warpgroups of 128 threads do not share the terms of a sum, by " + std::to_string(kSlices) +
                  " in blocks of " + std::to_string(threads));
  if (units == 0)
    return refuse(std::to_string(threads) + " threads are too few to share the terms by " + std::to_string(kSlices));
  GemmTiling best;
  best.rows = llvm::PowerOf2Ceil(std::max(tile.rows, leastRows));
  best.lanes = llvm::PowerOf2Ceil(std::max(tile.lanes, leastLanes));
  // Warpgroups share panels, and do not cut them.
  int64_t ownLanes = isGroup ? std::max(leastLanes, std::min(best.lanes, kPanelBytes / tile.laneBytes)) : leastLanes;
  // Fewest sums a thread, then nearest to a square: least is loaded for each product. An instruction of a warpgroup
  // has 64 rows, and takes all of its lanes at once.
  auto rank = [&](const GemmTiling &tiling) {
    return std::pair(tiling.sums, tiling.ownRows + (isGroup ? 0 : tiling.ownLanes));
  };
  for (int64_t rowUnits = 1; rowUnits <= std::min(units, best.rows / leastRows); rowUnits *= 2) {
    GemmTiling tiling = best;
    tiling.rowUnits = rowUnits;
    tiling.laneUnits = std::min(units / rowUnits, best.lanes / ownLanes);
    tiling.ownRows = best.rows / rowUnits;
    tiling.ownLanes = best.lanes / tiling.laneUnits;
    tiling.sums = tiling.ownRows * tiling.ownLanes / lanesOfUnit;
    if (best.sums == 0 || rank(tiling) < rank(best))
      best = tiling;
  }
  int64_t most = isWarp ? kWarpAccumulators : kThreadAccumulators;
  if (best.sums > most)
    return refuse("a tile of " + std::to_string(tile.rows) + "x" + std::to_string(tile.lanes) + " sums is " +
                  std::to_string(best.sums) + " for each of " + std::to_string(threads) + " threads, which hold " +
                  std::to_string(most));
  if ((isGroup || kSlices > 1) && best.rowUnits * best.laneUnits != units)
    return refuse("a tile of " + std::to_string(tile.rows) + "x" + std::to_string(tile.lanes) +
                  " sums leaves threads idle that " +
                  (isGroup ? "stand in warpgroups" : "share the terms by " + std::to_string(kSlices)));
  int64_t wide = std::max(tile.rowBytes, tile.laneBytes), narrow = std::min(tile.rowBytes, tile.laneBytes);
  int64_t least = std::max(kAtomBytes / narrow, isWarp ? kernel.depth : 1);
  int64_t needed = llvm::PowerOf2Ceil(std::max<int64_t>(tile.terms, 1));
  best.kSlices = kSlices;
  int64_t stepBytes = isGroup ? kPanelBytes : isWarp && kSlices == 1 ? kStepBytes : kSharedStepBytes;
  best.step = std::max(least, std::min(kSlices * stepBytes / wide, needed));
  if (best.step < kSlices * least)
    return refuse(std::to_string(tile.terms) + " terms are too few to be shared by " + std::to_string(kSlices));
  best.heldRows = std::min(best.rows, std::max<int64_t>(llvm::PowerOf2Ceil(tile.rows),
                                                        tile.lhsAlongK ? 1 : kAtomBytes / tile.rowBytes));
  if (isGroup)
    best.heldRows = best.rows;  // the instruction finds them by itself
  best.stages = isWarp ? 3 : 2; // at least
  // What warps read of an operand whose terms are not innermost, and the rows that threads do, is an atom at least.
  int64_t rowLine = tile.lhsAlongK ? best.heldRows : std::max(best.heldRows, kAtomBytes / tile.rowBytes);
  best.laneLine = isWarp ? std::max(best.lanes, kAtomBytes / tile.laneBytes) : best.lanes;
  best.rowsShifted = canShift(kernel) && tile.rowsShifted;
  best.lanesShifted = canShift(kernel) && tile.lanesShifted;
  auto setSlots = [&] {
    int64_t alignment = isGroup ? kPanelAlignment : kSlotAlignment;
    int64_t rowBytes = rowLine * best.step * tile.rowBytes, laneBytes = best.laneLine * best.step * tile.laneBytes;
    if (best.rowsShifted)
      rowBytes += (tile.lhsAlongK ? best.heldRows : best.step) * kAtomBytes;
    if (best.lanesShifted)
      laneBytes += (tile.rhsAlongK ? best.lanes : best.step) * kAtomBytes;
    best.rowSlotBytes = llvm::alignTo(rowBytes, alignment);
    best.laneSlotBytes = llvm::alignTo(laneBytes, alignment);
  };
  // With so many sums a thread blocks are alone on an SM; those of whole rows leave room for buffers all the same.
  bool isAlone = isGroup && best.sums > kThreadAccumulators && best.lanes <= kGroupLanes;
  int64_t mostBytes = isAlone ? kMostPanelBytes : kMostSlotBytes;
  for (setSlots(); best.sharedBytes() > mostBytes && best.step > kSlices * least; setSlots())
    best.step /= 2;
  // No more than there are steps, so that the next contraction's copies begin while this one is multiplied, one a step.
  int64_t steps = llvm::divideCeil(tile.terms, best.step);
  int64_t mostStages = isGroup ? kPanelStages : std::min(isWarp ? kMostStages : kPanelStages, steps);
  int64_t inFlightBytes = mostBytes;
  if (tile.alone && isWarp) {
    mostStages = std::min(kMostStagesAlone, steps);
    inFlightBytes = isGroup ? kMostPanelBytes : mostBytes;
  } else if (kSlices > 1) {
    mostStages = kMostStages;
    inFlightBytes = kStreamBytes;
  }
  best.stages = std::clamp(inFlightBytes / (best.rowSlotBytes + best.laneSlotBytes), best.stages,
                           std::max(best.stages, mostStages));
  best.overlaps = isGroup && best.stages >= kPanelStages; // fewer are needed for what is on its way
  best.loadsFactors = !isGroup;
  best.accumulatorThreads = best.rowUnits * best.laneUnits * lanesOfUnit;
  best.accumulatorBytes = std::max({best.accumulatorBytes, tile.rowBytes, tile.laneBytes});
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
