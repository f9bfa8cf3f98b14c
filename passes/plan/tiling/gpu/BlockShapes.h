// Chooses thread blocks for a fusion group on a GPU: the threads per block, the threads that share a row, and the tile
// of a block. All launch dimensions of FusionStitching's schemes (4.1, 4.2) are enumerated. Those that break the
// locality of intermediate results or of memory accesses are discarded, and the latency evaluator (4.3) chooses among
// the others.
#ifndef TILEWRIGHT_PLAN_TILING_GPU_BLOCKSHAPES_H
#define TILEWRIGHT_PLAN_TILING_GPU_BLOCKSHAPES_H

#include "passes/plan/space/IterationSpace.h"

namespace tilewright {

/// The threads that share a row, which is a point of the grid dims. `thread`: one thread, which keeps intermediate
/// results in registers. `warp`: lanes of a warp, which exchange them by shuffles. `block`: warps of a block, which
/// exchange them in shared memory. `columns`: the reduced dim is not the vector dim, so neighbouring threads compute
/// neighbouring results. `points`: nothing is reduced, and neighbouring threads compute neighbouring vectors.
/// `contraction`: contractions (ContractionBlocks.h).
enum class Composition { thread, warp, block, columns, points, contraction };

llvm::StringRef stringify(Composition composition);

/// A thread block that could compute a group, with its predicted latency.
struct BlockCandidate {
  Composition composition = Composition::points;
  int64_t threads = 0, group = 0;     ///< as in GroupPlan
  int64_t kSlices = 1;                ///< slices of K of contractions, each added up by one thread or warp
  std::optional<RegisterBlock> block; ///< register block of the micro kernel of contractions
  std::vector<int64_t> tiles;
  int64_t cluster = 1; ///< blocks of a cluster, which together read the inputs that all blocks read
  BlockWork work;
  BlockLatency latency;
  std::string discarded; ///< reason why the block cannot be used; empty if it can

  void applyTo(IterationSpace &space) const;

  void print(llvm::raw_ostream &os) const;
};

/// Returns all candidates. Block sizes that win ties come first. `footprint` returns the bytes of shared memory for the
/// tiles of `space`, whose tiles change temporarily.
std::vector<BlockCandidate> enumerateBlocks(const TensorGraph &graph, const Target &target, IterationSpace &space,
                                            llvm::function_ref<int64_t()> footprint);

/// Returns the block of `threads` threads for the present tiles of a group that reduces nothing, or nothing if it
/// reduces.
std::optional<BlockCandidate> blockOfTiles(const TensorGraph &graph, const Target &target, IterationSpace &space,
                                           int64_t threads, llvm::function_ref<int64_t()> footprint);

/// Returns the index of the best candidate, or -1 if all are discarded. It is the fastest one, and an earlier one if a
/// later one is not clearly faster. If its blocks read some data repeatedly, the fastest one that hardly does so
/// replaces it, if the difference is within the error of the prediction. For contractions it is the first candidate.
int64_t bestBlock(llvm::ArrayRef<BlockCandidate> candidates, const Target &target);

/// Gives the space the tiles, threads and group of the best candidate. Returns why all candidates that have memory were
/// discarded, or an empty string.
std::string chooseBlockShape(const TensorGraph &graph, const Target &target, IterationSpace &space,
                             llvm::function_ref<int64_t()> footprint);

} // namespace tilewright

#endif
