#include "passes/plan/fusion/Explorers.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"

using namespace mlir;
using namespace tilewright;

ArrayRef<Explorer> tilewright::explorers() {
  static constexpr Explorer all[] = {
      {"greedy", exploreGreedily}, {"unfused", exploreUnfused}, {"exhaustive", exploreExhaustively}};
  return all;
}

static const Explorer *explorerOf(StringRef policy) {
  ArrayRef<Explorer> all = explorers();
  const Explorer *found = llvm::find_if(all, [&](const Explorer &explorer) { return explorer.policy == policy; });
  return found == all.end() ? nullptr : found;
}

std::string tilewright::whyUnknownPolicy(StringRef policy) {
  if (explorerOf(policy))
    return "";
  auto names = llvm::map_range(explorers(), [](const Explorer &explorer) { return StringRef(explorer.policy); });
  return "unknown policy '" + policy.str() + "'; known policies: " + llvm::join(names, ", ");
}

OrDeclined<Plan> tilewright::solve(const FusionProblem &problem) {
  if (std::string why = whyUnknownPolicy(problem.options.policy); !why.empty())
    return Declined{why, "another policy"};
  if (std::optional<Declined> why = problem.check())
    return *why;
  return explorerOf(problem.options.policy)->explore(problem);
}

Plan tilewright::makePlan(const TensorGraph &graph, const Target &target, const PlanOptions &options,
                          const PlanRestrictions &restrictions) {
  if (graph.exprs().empty())
    return Plan{target.name, options.policy, options.numerics, {}, {}, {}, {}};
  OrDeclined<Plan> plan = solve(FusionProblem(graph, target, options, restrictions));
  if (!plan)
    llvm::report_fatal_error(llvm::Twine("no plan: ") + plan.why().reason);
  return std::move(*plan);
}

std::optional<double> tilewright::plannedSeconds(const TensorGraph &graph, const Plan &plan) {
  if (llvm::any_of(plan.left, [&](const LeftOp &op) { return graph.exprs()[op.id].kind != ExprKind::movement; }))
    return std::nullopt;
  double seconds = 0;
  for (const KernelPlan &kernel : plan.kernels)
    for (const CostTerm &term : kernel.predicted)
      if (term.name == "seconds")
        seconds += term.value;
  return seconds;
}

std::optional<double> tilewright::plannedSeconds(const TensorGraph &graph, const Target &target,
                                                 const PlanOptions &options) {
  return plannedSeconds(graph, makePlan(graph, target, options));
}
