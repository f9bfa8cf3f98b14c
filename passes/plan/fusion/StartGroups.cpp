// Starts a fusion group with every expression that a Tilewright kernel may compute. Every other expression is left to
// IREE, with the reason: it is not eligible, it is computed at load, or IREE folds it into a contraction of its own.
#include "passes/graph/ConstantOperand.h"
#include "passes/graph/Eligibility.h"
#include "passes/plan/fusion/PlannerStep.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tilewright;

/// Returns, for each expression, whether it computes sizes: a few integers that other ops take out of their tensor, or
/// from which sizes are computed. IREE computes them where it needs them, without a kernel.
static std::vector<bool> computesSizes(const TensorGraph &graph) {
  constexpr int64_t kMostSizes = 16;
  std::vector<bool> sizes(graph.exprs().size());
  for (unsigned id = graph.exprs().size(); id-- > 0;) {
    const TensorExpr &expr = graph.exprs()[id];
    auto makesShape = [&](OpOperand &use) {
      Operation *user = use.getOwner();
      if (int64_t reader = graph.indexOf(user); reader >= 0)
        return static_cast<bool>(sizes[reader]);
      return user->getBlock() == expr.op->getBlock() && // and no table of a body
             (isa<tensor::ExtractOp>(user) || (isa<tensor::ReshapeOp>(user) && use.getOperandNumber() == 1));
    };
    sizes[id] = expr.domainSize() <= kMostSizes && llvm::all_of(expr.op->getResults(), [&](Value result) {
                  auto type = cast<RankedTensorType>(result.getType());
                  return type.getElementType().isInteger() && type.getNumElements() <= kMostSizes &&
                         !result.use_empty() && llvm::all_of(result.getUses(), makesShape);
                });
  }
  return sizes;
}

namespace {
class GroupStarter : PlannerStep {
public:
  using PlannerStep::keepApart;
  using PlannerStep::PlannerStep;

  void classify() {
    std::vector<bool> atLoad = computedAtLoad(graph), layOut = layOutWeights(graph), irees(graph.exprs().size()),
                      sizes = computesSizes(graph);
    for (auto [id, expr] : llvm::enumerate(graph.exprs())) {
      decisions.reasons[id] = restrictions.left.contains(id) ? kLeftByRestriction.str() : whyNotEligible(expr);
      if (expr.kind != ExprKind::contraction)
        continue;
      if (decisions.reasons[id].empty() && !atLoad[id])
        startGroup(id);
      irees[id] = decisions.partOf[id] < 0 && !atLoad[id];
    }
    std::vector<int64_t> folded = foldsIntoContraction(graph, irees);
    for (auto [id, expr] : llvm::enumerate(graph.exprs())) {
      if (decisions.partOf[id] >= 0 || !decisions.reasons[id].empty())
        continue;
      if (atLoad[id] && layOut[id])
        decisions.reasons[id] = "lays a weight out for its kernel: done at compile time, in the parameter file (where "
                                "there is none to write, once at load)";
      else if (atLoad[id] && isView(expr))
        decisions.reasons[id] = "a reshape of weights and constants: a view, nothing to compute";
      else if (atLoad[id])
        decisions.reasons[id] = "depends on weights and constants alone: IREE computes it once at load";
      else if (sizes[id])
        decisions.reasons[id] = "computes the size of a tensor, which IREE needs outside of kernels";
      else if (folded[id] >= 0)
        decisions.reasons[id] = "IREE folds it into its " + opName(folded[id]);
      else if (llvm::all_of(expr.op->getResults(), [](Value result) { return result.use_empty(); }))
        decisions.reasons[id] = "nothing reads it";
      else
        startGroup(id);
    }
  }

  /// Leaves reshapes to IREE that no group reads. They end up at a border of a group whatever is merged, and as members
  /// they would keep the dims in front of them apart from those behind.
  void leaveLastViews() {
    for (unsigned expr = graph.exprs().size(); expr-- > 0;) {
      auto isTaken = [&](unsigned edge) { return decisions.partOf[graph.edges()[edge].consumer] >= 0; };
      if (decisions.partOf[expr] < 0 || !isView(graph.exprs()[expr]) || llvm::any_of(graph.outEdges(expr), isTaken))
        continue;
      decisions.parts[decisions.partOf[expr]].reset();
      leave(expr, kBorderView);
    }
  }

private:
  std::string opName(unsigned expr) const { return graph.exprs()[expr].op->getName().getStringRef().str(); }

  void startGroup(unsigned id) {
    OrDeclined<PlannedGroup> group = planGroup(groups, id);
    if (!group) {
      decisions.reasons[id] = group.why().reason;
      return;
    }
    decisions.partOf[id] = decisions.parts.size();
    decisions.parts.push_back(std::move(*group));
  }
};
} // namespace

PlanDraft tilewright::startGroups(const FusionProblem &problem, PlanDraft plan) {
  GroupStarter starter(problem, plan);
  starter.keepApart();
  starter.classify();
  starter.leaveLastViews();
  return plan;
}
