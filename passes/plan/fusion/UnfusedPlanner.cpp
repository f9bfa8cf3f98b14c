// The explorer that fuses nothing, the baseline of other plans.
#include "passes/plan/fusion/Explorers.h"

#include "passes/plan/fusion/PlannerStep.h"

using namespace mlir;
using namespace tilewright;

/// Says why edges stay at scope launch.
static PlanDraft explainLaunches(const FusionProblem &problem, PlanDraft plan) {
  for (const TensorEdge &edge : problem.graph.edges())
    if (int64_t from = plan.decisions.partOf[edge.producer], to = plan.decisions.partOf[edge.consumer];
        from >= 0 && to >= 0)
      plan.decisions.declined[{static_cast<unsigned>(from), static_cast<unsigned>(to)}] = {
          "the policy gives every op a kernel of its own", "another policy"};
  return plan;
}

OrDeclined<PlanDraft> tilewright::exploreUnfused(const FusionProblem &problem) {
  return runSteps(problem, {{"startGroups", startGroups},
                            {"trimViews", trimViews},
                            {"makeKernels", makeKernels},
                            {"explainLaunches", explainLaunches},
                            {"orderKernels", orderKernels}});
}
