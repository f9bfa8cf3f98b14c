// The explorer that fuses nothing, the baseline of other plans.
#include "passes/plan/fusion/Explorers.h"

#include "passes/plan/fusion/PlannerStep.h"

using namespace mlir;
using namespace tilewright;

static PlanDraft explainKernels(const FusionProblem &problem, PlanDraft plan) {
  explainLaunches(problem.graph, plan.decisions, [](const TensorEdge &) {
    return Declined{"the policy gives every op a kernel of its own", "another policy"};
  });
  return plan;
}

OrDeclined<PlanDraft> tilewright::exploreUnfused(const FusionProblem &problem) {
  return runSteps(problem, {{"startGroups", startGroups},
                            {"trimViews", trimViews},
                            {"makeKernels", makeKernels},
                            {"explainKernels", explainKernels},
                            {"orderKernels", orderKernels}});
}
