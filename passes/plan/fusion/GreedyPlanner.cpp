// The greedy explorer: its steps in their order.
#include "passes/plan/fusion/Explorers.h"

#include "passes/plan/fusion/PlannerStep.h"
#include "passes/plan/grid/JoinAtGrid.h"

using namespace mlir;
using namespace tilewright;

static PlanDraft joinKernels(const FusionProblem &problem, PlanDraft plan) {
  return joinAtGrid(problem.groups, problem.options.gridSync, std::move(plan));
}

OrDeclined<Plan> tilewright::exploreGreedily(const FusionProblem &problem) {
  PlanDraft plan = runSteps(problem, {{"startGroups", startGroups},
                                      {"growGroups", growGroups},
                                      {"handTransposesOn", handTransposesOn},
                                      {"trimViews", trimViews},
                                      {"dropSlowGroups", dropSlowGroups},
                                      {"makeKernels", makeKernels},
                                      {"packKernels", packKernels},
                                      {"joinKernels", joinKernels},
                                      {"dropLoneKernels", dropLoneKernels},
                                      {"orderKernels", orderKernels}});
  return writePlan(problem.graph, problem.machine, problem.options.policy, problem.options.numerics, plan.decisions);
}
