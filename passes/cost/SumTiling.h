// How the threads of a block share a tile of a contraction's sums: the decision behind the planner's block shapes and
// behind code generation on GPUs, which so agree. Pure.
//
// Threads (or warps, where a step is a warp's) stand in a grid over the tile; each keeps its share of the sums in
// registers over the whole reduction. Both operands pass through shared memory in steps of a few terms, several steps
// at a time: while one is multiplied, those behind it are on their way.
#ifndef TILEWRIGHT_COST_SUMTILING_H
#define TILEWRIGHT_COST_SUMTILING_H

#include "passes/target/MicroKernel.h"

namespace tilewright {

/// Rows by lanes of sums, each of so many terms; and what an element of either operand takes.
struct SumTile {
  int64_t rows, lanes, terms;
  int64_t rowBytes, laneBytes;
};

struct SumTiling {
  int64_t rows = 0, lanes = 0;                 ///< of the tile, filled up to powers of two
  int64_t rowUnits = 1, laneUnits = 1;         ///< threads, or warps, along them
  int64_t ownRows = 1, ownLanes = 1;           ///< of one of those
  int64_t sums = 0;                            ///< that a thread keeps
  int64_t step = 0, stages = 2;                ///< terms of a step; steps that are in shared memory together
  int64_t rowSlotBytes = 0, laneSlotBytes = 0; ///< of one step of either operand

  int64_t sharedBytes() const { return stages * (rowSlotBytes + laneSlotBytes); }
  /// Of a thread, roughly.
  int64_t registers() const;
  void print(llvm::raw_ostream &os) const;
};

/// Nothing if the threads cannot hold the sums; `reason` says it in numbers.
std::optional<SumTiling> tileSums(const SumTile &tile, int64_t threads, const MicroKernel &kernel,
                                  std::string *reason = nullptr);

} // namespace tilewright

#endif
