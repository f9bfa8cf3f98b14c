#include "passes/plan/fusion/FusionProblem.h"

#include "passes/plan/space/PlanNumerics.h"

using namespace mlir;
using namespace tilewright;

FusionProblem::FusionProblem(const TensorGraph &graph, const Target &target, PlanOptions options,
                             PlanRestrictions restrictions)
    : graph(graph), machine(target), options(std::move(options)),
      restrictions(std::move(restrictions)), groups(graph, machine, this->options.numerics),
      forms(recordedForms(graph)) {}

FusionProblem::FusionProblem(const TensorGraph &graph, const Target &target, PlanOptions options,
                             PlanRestrictions restrictions, GroupMemo &memo)
    : graph(graph), machine(target), options(std::move(options)),
      restrictions(std::move(restrictions)), groups(graph, machine, this->options.numerics, memo),
      forms(recordedForms(graph)) {}

std::string tilewright::whyIncomplete(const Target &target) {
  if (!target.levels.empty() && target.cores >= 1 && target.vectorBytes >= 1 && target.blockBytes >= 1)
    return "";
  return "target '" + target.name + "' lacks memory levels, cores, vectors or block memory";
}

std::optional<Declined> FusionProblem::check() const {
  if (graph.exprs().empty())
    return Declined{"the graph has no tensor expressions", "an op that Tilewright understands"};
  if (!llvm::all_of(graph.exprs(), [&](const TensorExpr &expr) { return expr.op->getBlock() == &block(); }))
    return Declined{"the graph's ops are in several blocks", "a function of one block"};
  if (std::string why = whyIncomplete(machine); !why.empty())
    return Declined{why, "a complete target"};
  if (std::string why = whyNotNumerics(options.numerics, machine); !why.empty())
    return Declined{why, "default or strict numerics"};
  return std::nullopt;
}
