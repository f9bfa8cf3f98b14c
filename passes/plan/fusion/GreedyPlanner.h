// A deterministic planner without search: expressions grow into parts along the edges of the graph as long as the index
// space allows it and the prediction improves, small independent parts are packed into one kernel (FusionStitching
// 4.1), and what is not predicted to beat IREE alone is left to it.
#ifndef TILEWRIGHT_PLAN_FUSION_GREEDYPLANNER_H
#define TILEWRIGHT_PLAN_FUSION_GREEDYPLANNER_H

#include "passes/plan/ir/Plan.h"
#include "passes/plan/space/PlannedGroup.h"

namespace tilewright {

struct PlanOptions {
  std::string policy = "greedy";
  NumericsMode numerics = NumericsMode::standard;
  /// Take what IREE alone would run as one dispatch too, if it has arithmetic.
  bool takeSingles = true;
  /// Put small independent parts into one kernel.
  bool pack = true;
  /// Join kernels that depend on each other by barriers of the grid, where the target has them.
  bool gridSync = true;
};

Plan makePlan(const TensorGraph &graph, const Target &target, const PlanOptions &options = {});

/// Predicted for all kernels of that plan; nothing where it leaves to IREE what computes.
std::optional<double> plannedSeconds(const TensorGraph &graph, const Target &target, const PlanOptions &options);

} // namespace tilewright

#endif
