// Predicts the bytes that all blocks of a group with contractions request from the L2: each tile of an operand as often
// as blocks copy it, in whole sectors. The simulated device counts the same. Everything here is a pure function.
#ifndef TILEWRIGHT_PLAN_TILING_GPU_L2TRAFFIC_H
#define TILEWRIGHT_PLAN_TILING_GPU_L2TRAFFIC_H

#include "passes/layout/GemmTiling.h"
#include "passes/plan/space/IterationSpace.h"

namespace tilewright {

/// Returns the L2 traffic of one operand of a contraction, copied in the steps of the tiling.
double l2TrafficOfOperand(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &contraction,
                          unsigned operand, const GemmTiling &tiling);

/// Returns the L2 traffic of everything else that the group reads and writes in global memory. `onTensorCores` is true
/// if results are distributed over threads as tensor core instructions leave them.
double l2TrafficBesideOperands(const TensorGraph &graph, const IterationSpace &space, bool onTensorCores);

} // namespace tilewright

#endif
