// Blocks of threads for a part on a GPU: how many threads a block has, how many of them share a row, and the tile that
// a block computes. All shapes of FusionStitching's schemes (4.2) are enumerated and the latency evaluator (4.3)
// chooses. Sets tiles, threads and group of the space.
#ifndef TILEWRIGHT_PLAN_BLOCKSHAPES_H
#define TILEWRIGHT_PLAN_BLOCKSHAPES_H

#include "passes/plan/IndexSpace.h"

namespace tilewright {

/// `footprint` gives the bytes of shared memory that the tiles of the space take.
void chooseBlockShape(const TensorGraph &graph, const Target &target, IndexSpace &space,
                      llvm::function_ref<int64_t()> footprint);

} // namespace tilewright

#endif
