// What all blocks of a part with contractions ask of the L2: every tile of an operand as often as blocks copy it, in
// whole sectors. Pure; the simulated device counts the same.
#ifndef TILEWRIGHT_PLAN_TILING_GPU_ASKEDBYTES_H
#define TILEWRIGHT_PLAN_TILING_GPU_ASKEDBYTES_H

#include "passes/cost/SumTiling.h"
#include "passes/plan/space/IndexSpace.h"

namespace tilewright {

/// Of an operand of a contraction, copied in the steps of the tiling.
double askedOfOperand(const TensorGraph &graph, const IndexSpace &space, const PartRoot &contraction, unsigned operand,
                      const SumTiling &tiling);

/// Of everything else that the part reads and writes in global memory; `onTensorCores`: results lie with threads as
/// warps' instructions leave them.
double askedBesideOperands(const TensorGraph &graph, const IndexSpace &space, bool onTensorCores);

} // namespace tilewright

#endif
