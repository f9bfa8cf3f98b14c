// Chooses how the threads of a block on a GPU share a contraction: the grid of units, then the step along K, then the
// number of stages. Only the planner calls it; all others read its decision (layout/GemmChoice.h). Pure.
#ifndef TILEWRIGHT_COST_CHOOSEGEMM_H
#define TILEWRIGHT_COST_CHOOSEGEMM_H

#include "passes/layout/GemmTiling.h"
#include "passes/target/CostParameters.h"

namespace tilewright {

/// The circumstances of a contraction, besides its tile.
struct GemmUse {
  int64_t kSlices = 1; ///< slices of K that units take
  bool alone = false;  ///< true if an SM holds one such block, with no other copies in flight
};

/// Chooses units, step and stages for a tile. Declines, with numbers, if the threads cannot hold the accumulators or
/// cannot split K into the slices.
OrDeclined<GemmChoice> chooseGemm(const GemmTile &tile, int64_t threads, const MicroKernel &kernel,
                                  const GpuCosts &costs, GemmUse use = {});

/// Returns the layout of that choice.
OrDeclined<GemmTiling> chooseGemmTiling(const GemmTile &tile, int64_t threads, const MicroKernel &kernel,
                                        const GpuCosts &costs, GemmUse use = {});

} // namespace tilewright

#endif
