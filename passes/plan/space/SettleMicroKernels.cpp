#include "passes/plan/space/SettleMicroKernels.h"

#include "passes/graph/Contraction.h"
#include "passes/plan/space/ContractionKernel.h"
#include "passes/target/Warpgroups.h"

using namespace mlir;
using namespace tilewright;

static std::optional<ContractionRoles> ownRolesOf(const TensorExpr &expr) {
  if (expr.kind != ExprKind::contraction || expr.inputs.size() != 2)
    return std::nullopt;
  return contractionRoles(expr, expr.inputs[0].map, expr.inputs[1].map);
}

static bool readsBuffers(const Plan &plan, const TensorGraph &graph, unsigned op);

/// Returns true if the value of the edge comes from a buffer of the block. A value computed in registers on the way
/// counts if its own operands come from buffers.
static bool isInBuffer(const Plan &plan, const TensorGraph &graph, const TensorEdge &edge) {
  const EdgePlan *planned = plan.edge(edge.consumer, edge.input);
  if (!planned || planned->scope > tile::Scope::block)
    return false;
  return planned->scope == tile::Scope::block || readsBuffers(plan, graph, edge.producer);
}

static bool readsBuffers(const Plan &plan, const TensorGraph &graph, unsigned op) {
  return llvm::any_of(graph.inEdges(op), [&](unsigned edge) { return isInBuffer(plan, graph, graph.edges()[edge]); });
}

static bool isInBuffer(const Plan &plan, const TensorGraph &graph, unsigned op, unsigned input) {
  return llvm::any_of(graph.inEdges(op), [&](unsigned edge) {
    const TensorEdge &entry = graph.edges()[edge];
    return entry.input == input && isInBuffer(plan, graph, entry);
  });
}

GroupChoice tilewright::choiceOf(const Plan &plan, const TensorGraph &graph, const GroupPlan &group) {
  GroupChoice choice;
  for (const OpPlan &op : group.ops)
    choice.exprs.push_back(op.id);
  for (unsigned op : choice.exprs)
    for (unsigned edge : graph.inEdges(op)) {
      const TensorEdge &entry = graph.edges()[edge];
      const EdgePlan *planned = plan.edge(entry.consumer, entry.input);
      if (planned && planned->scope <= tile::Scope::block && choice.contains(entry.producer))
        choice.scopes[edge] = planned->scope;
    }
  return choice;
}

unsigned tilewright::firstInputOf(const Plan &plan, const TensorGraph &graph, const KernelPlan &kernel,
                                 const GroupPlan &group) {
  unsigned first = 0;
  for (const GroupPlan &before : ArrayRef(kernel.groups).take_front(&group - kernel.groups.data()))
    first += groupInputs(graph, choiceOf(plan, graph, before)).size();
  return first;
}

std::vector<GroupRoot> tilewright::plannedRoots(const TensorGraph &graph, const GroupChoice &choice,
                                                const GroupPlan &group) {
  std::vector<GroupRoot> roots = collectRoots(graph, choice);
  for (GroupRoot &root : roots)
    root.dims.assign(group.op(root.expr).dims.begin(), group.op(root.expr).dims.end());
  return roots;
}

/// Returns true if the same dim of K is innermost in both operands of the contraction, after transposes on the way.
static bool hasKInnermost(const TensorGraph &graph, ArrayRef<GroupRoot> roots, unsigned op) {
  for (const GroupRoot &root : roots)
    if (root.expr == op && root.accesses.size() == 2)
      return lieAlongK(graph.exprs()[op], root.accesses[0].map, root.accesses[1].map);
  return true;
}

std::vector<SettledKernel> tilewright::settleMicroKernels(Plan &plan, const TensorGraph &graph, const Target &target) {
  std::vector<SettledKernel> settled;
  for (KernelPlan &kernel : plan.kernels)
    for (GroupPlan &group : kernel.groups) {
      std::optional<std::vector<GroupRoot>> roots; // of groups with contractions
      for (OpPlan &op : group.ops) {
        const TensorExpr &expr = graph.exprs()[op.id];
        std::optional<ContractionRoles> roles = ownRolesOf(expr);
        if (op.microKernel.empty() || !roles)
          continue;
        if (!roots)
          roots = collectRoots(graph, choiceOf(plan, graph, group));
        std::string reason;
        OperandStorage storage{isInBuffer(plan, graph, op.id, roles->lhsInput),
                               isInBuffer(plan, graph, op.id, roles->rhsInput),
                               hasKInnermost(graph, *roots, op.id)};
        std::optional<MicroKernel> taken =
            blockMicroKernel(target, productTypes(expr, *roles), op.microKernel, storage, plan.numerics, &reason);
        if (!taken)
          continue;
        std::string label = taken->label(target);
        if (label == op.microKernel)
          continue;
        if (reason.empty())
          reason = "the target has no micro kernel of this name for these operand types";
        settled.push_back({op.id, op.microKernel, label, reason});
        op.microKernel = label;
        op.gemm.reset(); // it was chosen for another micro kernel, as were these
        op.numerics.reassociates |= !taken->strict;
        llvm::erase_if(op.tilings, [](const LevelTiling &tiling) { return tiling.level != tile::Scope::block; });
      }
    }
  return settled;
}
