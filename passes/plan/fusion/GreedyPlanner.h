// A deterministic planner without search. Fusion groups grow along the edges of the graph as long as one iteration
// space serves them and the prediction improves. Groups that are not predicted to beat IREE alone are left to IREE, and
// small independent groups are packed into one kernel (FusionStitching 4.1). PlannerStep.h lists the steps.
#ifndef TILEWRIGHT_PLAN_FUSION_GREEDYPLANNER_H
#define TILEWRIGHT_PLAN_FUSION_GREEDYPLANNER_H

#include "passes/plan/ir/Plan.h"
#include "passes/plan/space/PlannedGroup.h"

namespace tilewright {

struct PlanOptions {
  std::string policy = "greedy";
  NumericsMode numerics = NumericsMode::standard;
  /// Take groups that IREE alone would run as one dispatch, too, if they have arithmetic.
  bool takeSingles = true;
  /// Put small independent groups into one kernel.
  bool pack = true;
  /// Join kernels that depend on each other by grid barriers, if the target has them.
  bool gridSync = true;
};

Plan makePlan(const TensorGraph &graph, const Target &target, const PlanOptions &options = {});

/// Returns the predicted seconds of all kernels of that plan together, or nothing if it leaves arithmetic to IREE.
std::optional<double> plannedSeconds(const TensorGraph &graph, const Target &target, const PlanOptions &options);

} // namespace tilewright

#endif
