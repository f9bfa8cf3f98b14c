// The greedy explorer: its steps in their order.
#include "passes/plan/fusion/Explorers.h"

#include "passes/plan/fusion/GroupingPolicy.h"
#include "passes/plan/grid/JoinAtGrid.h"

using namespace mlir;
using namespace tilewright;

static PlanDraft joinKernels(const FusionProblem &problem, PlanDraft plan) {
  return joinAtGrid(problem.groups, problem.options.gridSync, std::move(plan));
}

ArrayRef<PlanStep> tilewright::greedyGroupSteps() {
  static constexpr PlanStep steps[] = {
      {"growGroups", growGroups}, {"handTransposesOn", handTransposesOn}, {"trimViews", trimViews}};
  return steps;
}

ArrayRef<PlanStep> tilewright::kernelSteps() {
  static constexpr PlanStep steps[] = {{"dropSlowGroups", dropSlowGroups},   {"makeKernels", makeKernels},
                                       {"packKernels", packKernels},         {"joinKernels", joinKernels},
                                       {"dropLoneKernels", dropLoneKernels}, {"orderKernels", orderKernels}};
  return steps;
}

OrDeclined<PlanDraft> tilewright::exploreGreedily(const FusionProblem &problem) {
  PlanDraft plan = runSteps(problem, {{"startGroups", startGroups}});
  plan = runSteps(problem, std::move(plan), greedyGroupSteps());
  return runSteps(problem, std::move(plan), kernelSteps());
}
