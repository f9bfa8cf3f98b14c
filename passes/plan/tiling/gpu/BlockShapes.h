// Blocks of threads for a part on a GPU: how many threads a block has, how many of them share a row, and the tile that
// a block computes. All launch dimensions of FusionStitching's schemes (4.1, 4.2) are enumerated, those that break the
// locality of what is handed over or of what neighbours read are discarded, and the latency evaluator (4.3) chooses.
#ifndef TILEWRIGHT_PLAN_TILING_GPU_BLOCKSHAPES_H
#define TILEWRIGHT_PLAN_TILING_GPU_BLOCKSHAPES_H

#include "passes/plan/space/IterationSpace.h"

namespace tilewright {

/// Who shares a row, a point of the grid dims: nobody (what is handed over stays in registers of a thread), lanes of a
/// warp (by shuffles), or warps of a block (by shared memory); `columns` where the reduced dim is not the vector dim,
/// so that neighbours take neighbouring results, `points` where nothing is reduced and neighbours take neighbouring
/// vectors; `sums` of contractions (ContractionBlocks.h).
enum class Composition { thread, warp, block, columns, points, sums };

llvm::StringRef stringify(Composition composition);

/// One way to compute a part.
struct BlockCandidate {
  Composition composition = Composition::points;
  int64_t threads = 0, group = 0;     ///< as in GroupPlan
  int64_t kSlices = 1;                ///< of contractions: threads or warps that share the terms
  std::optional<RegisterBlock> block; ///< of the micro kernel of contractions
  std::vector<int64_t> tiles;
  int64_t cluster = 1; ///< blocks that read together what all blocks read
  BlockWork work;
  BlockLatency latency;
  std::string discarded; ///< why it is none; empty if it is one

  void applyTo(IterationSpace &space) const;

  void print(llvm::raw_ostream &os) const;
};

/// All of them, of block sizes first that are taken where others are no better. `footprint` gives the bytes of shared
/// memory that the tiles of the space take; those of `space` change meanwhile.
std::vector<BlockCandidate> enumerateBlocks(const TensorGraph &graph, const Target &target, IterationSpace &space,
                                            llvm::function_ref<int64_t()> footprint);

/// Blocks of so many threads for the tiles that the space has, of a part that reduces nothing; nothing if it does.
std::optional<BlockCandidate> blockOfTiles(const TensorGraph &graph, const Target &target, IterationSpace &space,
                                           int64_t threads, llvm::function_ref<int64_t()> footprint);

/// The quickest that is not discarded, an earlier one where a later one is not clearly quicker. Where its blocks read
/// the same, the quickest that hardly does so instead, if its kernel takes no longer than predictions are exact.
/// -1: none. Of contractions it is the first.
int64_t bestBlock(llvm::ArrayRef<BlockCandidate> candidates, const Target &target);

/// Sets tiles, threads and group of the space to those of the quickest.
void chooseBlockShape(const TensorGraph &graph, const Target &target, IterationSpace &space,
                      llvm::function_ref<int64_t()> footprint);

} // namespace tilewright

#endif
