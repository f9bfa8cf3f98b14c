// Runs the steps of the greedy planner in their order.
#include "passes/plan/fusion/GreedyPlanner.h"

#include "passes/plan/fusion/PlannerStep.h"
#include "passes/plan/grid/JoinAtGrid.h"
#include "passes/plan/space/PlanNumerics.h"

using namespace mlir;
using namespace tilewright;

Plan tilewright::makePlan(const TensorGraph &graph, const Target &target, const PlanOptions &options) {
  return makePlan(graph, target, options, PlanRestrictions());
}

Plan tilewright::makePlan(const TensorGraph &graph, const Target &target, const PlanOptions &options,
                          const PlanRestrictions &restrictions) {
  if (graph.exprs().empty())
    return Plan{target.name, options.policy, options.numerics, {}, {}, {}, {}};
  Target machine = forNumerics(target, options.numerics);
  PlannerState state(graph, machine, options, restrictions, *graph.exprs().front().op->getBlock());
  startGroups(state);
  growGroups(state);
  moveBorders(state);
  dropSlowGroups(state);
  packGroups(state);
  joinAtGrid(graph, machine, state.partition, state.decisions, options.gridSync);
  dropLoneKernels(state);
  orderKernels(state);
  return writePlan(graph, machine, options.policy, options.numerics, state.decisions);
}

std::optional<double> tilewright::plannedSeconds(const TensorGraph &graph, const Target &target,
                                                 const PlanOptions &options) {
  Plan plan = makePlan(graph, target, options);
  if (llvm::any_of(plan.left, [&](const LeftOp &op) { return graph.exprs()[op.id].kind != ExprKind::movement; }))
    return std::nullopt;
  double seconds = 0;
  for (const KernelPlan &kernel : plan.kernels)
    for (const CostTerm &term : kernel.predicted)
      if (term.name == "seconds")
        seconds += term.value;
  return seconds;
}
