// What all blocks of a part with contractions ask of the L2: every tile of an operand as often as blocks copy it, in
// whole sectors. Pure; the simulated device counts the same.
#ifndef TILEWRIGHT_PLAN_TILING_GPU_L2TRAFFIC_H
#define TILEWRIGHT_PLAN_TILING_GPU_L2TRAFFIC_H

#include "passes/cost/GemmTiling.h"
#include "passes/plan/space/IterationSpace.h"

namespace tilewright {

/// Of an operand of a contraction, copied in the steps of the tiling.
double l2TrafficOfOperand(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &contraction,
                          unsigned operand, const GemmTiling &tiling);

/// Of everything else that the part reads and writes in global memory; `onTensorCores`: results lie with threads as
/// warps' instructions leave them.
double l2TrafficBesideOperands(const TensorGraph &graph, const IterationSpace &space, bool onTensorCores);

} // namespace tilewright

#endif
