#include "passes/plan/fusion/Explorers.h"

#include "passes/graph/Eligibility.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tilewright;

ArrayRef<Explorer> tilewright::explorers() {
  static constexpr Explorer all[] = {{"greedy", exploreGreedily},
                                     {"unfused", exploreUnfused},
                                     {"xla", exploreByGroupingPolicy},
                                     {"fusionstitching", exploreByGroupingPolicy},
                                     {"welder", exploreByGroupingPolicy},
                                     {"powerfusion", exploreByGroupingPolicy},
                                     {"souffle", exploreByGroupingPolicy},
                                     {"chimera", exploreByGroupingPolicy},
                                     {"unified", exploreUnified, FormSearchKind::changes},
                                     {"exhaustive", exploreExhaustively, FormSearchKind::all}};
  return all;
}

static const Explorer *explorerOf(StringRef policy) {
  ArrayRef<Explorer> all = explorers();
  const Explorer *found = llvm::find_if(all, [&](const Explorer &explorer) { return explorer.policy == policy; });
  return found == all.end() ? nullptr : found;
}

std::optional<FormSearchKind> tilewright::formSearchOf(StringRef policy) {
  const Explorer *explorer = explorerOf(policy);
  return explorer ? std::optional(explorer->forms) : std::nullopt;
}

std::string tilewright::whyUnknownPolicy(StringRef policy) {
  if (explorerOf(policy))
    return "";
  auto names = llvm::map_range(explorers(), [](const Explorer &explorer) { return StringRef(explorer.policy); });
  return "unknown policy '" + policy.str() + "'; known policies: " + llvm::join(names, ", ");
}

OrDeclined<PlanDraft> tilewright::explore(const FusionProblem &problem) {
  if (std::string why = whyUnknownPolicy(problem.options.policy); !why.empty())
    return Declined{why, "another policy"};
  if (std::optional<Declined> why = problem.check())
    return *why;
  return explorerOf(problem.options.policy)->explore(problem);
}

Plan tilewright::writePlan(const FusionProblem &problem, const PlanDraft &draft) {
  Plan plan = writePlan(problem.graph, problem.machine, problem.options.policy, problem.options.numerics,
                        draft.decisions);
  addLeastMovement(plan, problem.graph, problem.machine, draft.decisions);
  plan.forms = problem.forms;
  return plan;
}

OrDeclined<Plan> tilewright::solve(const FusionProblem &problem) {
  OrDeclined<PlanDraft> draft = explore(problem);
  return draft ? OrDeclined<Plan>(writePlan(problem, *draft)) : draft.why();
}

OrDeclined<Plan> tilewright::makePlan(const TensorGraph &graph, const Target &target, const PlanOptions &options,
                                      const PlanRestrictions &restrictions) {
  if (graph.exprs().empty())
    return Plan{target.name, options.policy, options.numerics, {}, {}, {}, {}, {}, {}};
  return solve(FusionProblem(graph, target, options, restrictions));
}

OrDeclined<double> tilewright::plannedSeconds(const TensorGraph &graph, const Plan &plan) {
  std::vector<bool> atLoad = computedAtLoad(graph);
  if (llvm::any_of(plan.left, [&](const LeftOp &op) {
        return graph.exprs()[op.id].kind != ExprKind::movement && !atLoad[op.id];
      }))
    return Declined{"the planner leaves part of it to IREE", "a target for which all of it is planned"};
  double seconds = 0;
  for (const KernelPlan &kernel : plan.kernels)
    for (const CostTerm &term : kernel.predicted)
      if (term.name == "seconds")
        seconds += term.value;
  return seconds;
}

OrDeclined<double> tilewright::plannedSeconds(const TensorGraph &graph, const Target &target,
                                              const PlanOptions &options) {
  if (graph.exprs().empty())
    return 0.0;
  FusionProblem problem(graph, target, options);
  OrDeclined<PlanDraft> draft = explore(problem);
  return draft ? plannedSeconds(graph, writePlan(graph, target, options.policy, options.numerics, draft->decisions))
               : draft.why();
}
