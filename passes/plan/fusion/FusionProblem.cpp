#include "passes/plan/fusion/FusionProblem.h"

#include "passes/plan/space/PlanNumerics.h"

using namespace mlir;
using namespace tilewright;

FusionProblem::FusionProblem(const TensorGraph &graph, const Target &target, PlanOptions options,
                             PlanRestrictions restrictions)
    : graph(graph), machine(forNumerics(target, options.numerics)), options(std::move(options)),
      restrictions(std::move(restrictions)), groups(graph, machine) {}

FusionProblem::FusionProblem(const TensorGraph &graph, const Target &target, PlanOptions options,
                             PlanRestrictions restrictions, GroupMemo &memo)
    : graph(graph), machine(forNumerics(target, options.numerics)), options(std::move(options)),
      restrictions(std::move(restrictions)), groups(graph, machine, memo) {}

std::optional<Declined> FusionProblem::check() const {
  if (graph.exprs().empty())
    return Declined{"the graph has no tensor expressions", "an op that Tilewright understands"};
  if (!llvm::all_of(graph.exprs(), [&](const TensorExpr &expr) { return expr.op->getBlock() == &block(); }))
    return Declined{"the graph's ops are in several blocks", "a function of one block"};
  if (machine.levels.empty() || machine.cores < 1 || machine.vectorBytes < 1 || machine.blockBytes < 1)
    return Declined{"target '" + machine.name + "' lacks memory levels, cores, vectors or block memory",
                    "a complete target"};
  if (options.numerics == NumericsMode::tf32 && machine.backend != Backend::cuda)
    return Declined{"numerics 'tf32' are for GPUs; target '" + machine.name + "' multiplies f32 without rounding",
                    "default or strict numerics"};
  return std::nullopt;
}
