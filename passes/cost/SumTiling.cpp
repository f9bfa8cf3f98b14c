#include "passes/cost/SumTiling.h"

#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace tilewright;

namespace {
constexpr int64_t kWarpLanes = 32;
constexpr int64_t kAtomBytes = 16;  ///< what is loaded from shared memory at once
constexpr int64_t kStepBytes = 64;  ///< of a row of an operand in a step
constexpr int64_t kThreadSums = 64; ///< that leave registers for the operands
constexpr int64_t kWarpSums = 128;  ///< the same where a warp's step keeps operands packed
constexpr int64_t kOtherRegisters = 64;
constexpr int64_t kSlotAlignment = 128;
constexpr int64_t kMostSlotBytes = 96 * 1024; ///< of all steps together, so that whole rows leave room for buffers

int64_t slotBytes(int64_t points, int64_t step, int64_t bytes) {
  // Of an operand whose terms are not innermost a row has an atom at least.
  int64_t padded = std::max(points, kAtomBytes / bytes);
  return llvm::alignTo(padded * step * bytes, kSlotAlignment);
}
} // namespace

int64_t SumTiling::registers() const { return sums + kOtherRegisters + 2 * (ownRows + ownLanes); }

void SumTiling::print(llvm::raw_ostream &os) const {
  os << rows << "x" << lanes << " sums by " << rowUnits << "x" << laneUnits << " of " << ownRows << "x" << ownLanes
     << ", " << sums << " a thread, steps of " << step << " in " << stages << " stages, " << sharedBytes() << " bytes";
}

std::optional<SumTiling> tilewright::tileSums(const SumTile &tile, int64_t threads, const MicroKernel &kernel,
                                              std::string *reason) {
  bool isWarp = kernel.unit == StepUnit::warp;
  int64_t leastRows = isWarp ? kernel.block.rows : 1, leastLanes = isWarp ? 2 * kernel.block.vectors : 1;
  int64_t units = isWarp ? threads / kWarpLanes : threads, lanesOfUnit = isWarp ? kWarpLanes : 1;
  SumTiling best;
  best.rows = llvm::PowerOf2Ceil(std::max(tile.rows, leastRows));
  best.lanes = llvm::PowerOf2Ceil(std::max(tile.lanes, leastLanes));
  // Fewest sums a thread, then nearest to a square: least is loaded for each product.
  auto rank = [](const SumTiling &tiling) { return std::pair(tiling.sums, tiling.ownRows + tiling.ownLanes); };
  for (int64_t rowUnits = 1; rowUnits <= std::min(units, best.rows / leastRows); rowUnits *= 2) {
    SumTiling tiling = best;
    tiling.rowUnits = rowUnits;
    tiling.laneUnits = std::min(units / rowUnits, best.lanes / leastLanes);
    tiling.ownRows = best.rows / rowUnits;
    tiling.ownLanes = best.lanes / tiling.laneUnits;
    tiling.sums = tiling.ownRows * tiling.ownLanes / lanesOfUnit;
    if (best.sums == 0 || rank(tiling) < rank(best))
      best = tiling;
  }
  int64_t most = isWarp ? kWarpSums : kThreadSums;
  if (best.sums > most) {
    if (reason)
      *reason = "a tile of " + std::to_string(tile.rows) + "x" + std::to_string(tile.lanes) + " sums is " +
                std::to_string(best.sums) + " for each of " + std::to_string(threads) + " threads, which hold " +
                std::to_string(most);
    return std::nullopt;
  }
  int64_t wide = std::max(tile.rowBytes, tile.laneBytes), narrow = std::min(tile.rowBytes, tile.laneBytes);
  int64_t least = std::max(kAtomBytes / narrow, isWarp ? kernel.depth : 1);
  int64_t needed = llvm::PowerOf2Ceil(std::max<int64_t>(tile.terms, 1));
  best.step = std::max(least, std::min(kStepBytes / wide, needed));
  best.stages = isWarp ? 3 : 2;
  auto setSlots = [&] {
    best.rowSlotBytes = slotBytes(best.rows, best.step, tile.rowBytes);
    best.laneSlotBytes = slotBytes(best.lanes, best.step, tile.laneBytes);
  };
  for (setSlots(); best.sharedBytes() > kMostSlotBytes && best.step > least; setSlots())
    best.step /= 2;
  return best;
}
