// How the threads of a block share a tile of a contraction's sums: the decision behind the planner's block shapes and
// behind code generation on GPUs, which so agree. Pure.
//
// Threads (or warps, where a step is a warp's) stand in a grid over the tile; each keeps its share of the sums in
// registers over the whole reduction. Where a tile has fewer sums than a block has threads (few rows), several of them
// may share the terms of each step, and add up their sums at the end. Both operands pass through shared memory in steps
// of a few terms, several steps at a time: while one is multiplied, those behind it are on their way.
#ifndef TILEWRIGHT_COST_GEMMTILING_H
#define TILEWRIGHT_COST_GEMMTILING_H

#include "passes/target/MicroKernel.h"

namespace tilewright {

/// Rows by lanes of sums, each of so many terms; and what an element of either operand takes.
struct GemmTile {
  int64_t rows, lanes, terms;
  int64_t rowBytes, laneBytes;
  bool lhsAlongK = false; ///< how the operand of the rows lies in memory: no row is read that is not there
  bool alone = false;          ///< nothing else is on its way to the SM: it has one block, and that no other nests
  bool rhsAlongK = false;
  /// Lines of 16-bit elements that begin anywhere in a word: a warp's are copied from that word on.
  bool rowsShifted = false, lanesShifted = false;
};

struct GemmTiling {
  static constexpr int64_t kBarrierBytes = 8;
  static constexpr int64_t kLoopRegisters = 16;        ///< of a loop that carries sums, besides those
  static constexpr int64_t kMostKeptBytes = 32 * 1024; ///< of an operand that stays while others pass

  int64_t rows = 0, lanes = 0;                 ///< of the tile, filled up to powers of two
  int64_t rowUnits = 1, laneUnits = 1;         ///< threads, or warps, along them
  int64_t kSlices = 1;                       ///< the same, along the terms of a step
  int64_t ownRows = 1, ownLanes = 1;           ///< of one of those
  int64_t heldRows = 0;                        ///< that a step has in shared memory; the others repeat them
  int64_t laneLine = 0;                        ///< points of a line of lanes, where terms are not innermost
  int64_t sums = 0;                            ///< that a thread keeps
  int64_t step = 0, stages = 2;                ///< terms of a step; steps that are in shared memory together
  int64_t rowSlotBytes = 0, laneSlotBytes = 0; ///< of one step of either operand
  int64_t keptSteps = 0;                ///< of the row operand, all of them, if a loop around keeps them; 0: none
  int64_t accumulatorThreads = 0, accumulatorBytes = 4; ///< that hold the tile's sums once; bytes of a sum
  bool rowsShifted = false, lanesShifted = false; ///< lines have room to begin behind the first element
  bool loadsFactors = true;                       ///< into registers, before they are multiplied
  bool overlaps = false;                          ///< a step is still multiplied when the next one begins

  /// Of each step, for a unit.
  int64_t ownK() const { return step / kSlices; }
  /// Whose copies are on their way while one is multiplied: the slot of a step that still is cannot be filled anew.
  int64_t stepsInFlight() const { return stages - (overlaps ? 2 : 1); }
  /// Where bulk copies of a warpgroup's operand complete: an mbarrier a stage, behind the slots.
  int64_t barrierBytes() const { return loadsFactors ? 0 : stages * kBarrierBytes; }
  int64_t rowBytes() const { return (keptSteps > 0 ? keptSteps : stages) * rowSlotBytes; }
  int64_t slotBytes() const { return rowBytes() + stages * laneSlotBytes; }
  int64_t sharedBytes() const {
    return std::max(slotBytes() + barrierBytes(), (kSlices - 1) * accumulatorThreads * sums * accumulatorBytes);
  }
  /// To combine rows of the sums while they are in registers: a value of each of the rows that a thread has sums of,
  /// behind the row operand that stays.
  int64_t combiningBytes(int64_t threads, int64_t valueBytes) const;
  /// Has the row operand of so many terms stay in shared memory while a loop around the contraction takes other lanes,
  /// if that is little.
  void keepRows(int64_t terms);
  /// Has the row operand be read where another nest left it: into registers, which a product that overlaps the next
  /// step would still read.
  void readRowsInPlace();
  /// Of a thread, for its sums.
  int64_t accumulatorRegisters() const;
  /// Of a thread, roughly, in all.
  int64_t registers() const;
  void print(llvm::raw_ostream &os) const;
};

/// Whether what multiplies finds factors wherever lines begin: element by element, and not by descriptors.
bool canShift(const MicroKernel &kernel);

/// Nothing if the threads cannot hold the sums, or `kSlices` of them not share the terms; `reason` says it in
/// numbers.
std::optional<GemmTiling> chooseGemmTiling(const GemmTile &tile, int64_t threads, const MicroKernel &kernel,
                                  std::string *reason = nullptr, int64_t kSlices = 1);

/// How a plan's label of a micro kernel says that units share the terms: "fma-8x8" alone, "fma-8x8k4" for four.
std::string labelWithKSlices(llvm::StringRef label, int64_t kSlices);
int64_t kSlicesOf(llvm::StringRef label);

} // namespace tilewright

#endif
