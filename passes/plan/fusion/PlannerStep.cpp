// Questions about fusion groups that several steps of the planner ask.
#include "passes/plan/fusion/PlannerStep.h"

#include "passes/backend/Backend.h"
#include "passes/graph/Eligibility.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace tilewright;

std::string tilewright::microseconds(double seconds) {
  double value = seconds * 1e6;
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format(value < 999.5 ? "%.3g us" : "%.0f us", value); // never an exponent
  return text;
}

PlanDraft tilewright::runSteps(const FusionProblem &problem, PlanDraft plan, ArrayRef<PlanStep> steps) {
  for (const PlanStep &step : steps) {
    plan = step.run(problem, std::move(plan));
    if (std::string why = plan.verify(); !why.empty())
      llvm::report_fatal_error(llvm::Twine("the planner's step '") + step.name + "' left an illegal plan: " + why);
  }
  return plan;
}

PlanDraft tilewright::runSteps(const FusionProblem &problem, ArrayRef<PlanStep> steps) {
  return runSteps(problem, PlanDraft(problem.graph, problem.block()), steps);
}

PlanDraft tilewright::withGroups(const FusionProblem &problem, PlanDraft plan, ArrayRef<ArrayRef<unsigned>> groups) {
  Decisions &decisions = plan.decisions;
  decisions.parts.clear();
  for (ArrayRef<unsigned> group : groups) {
    bool isFree = llvm::all_of(group, [&](unsigned expr) { return isView(problem.graph.exprs()[expr]); });
    for (unsigned expr : group) {
      decisions.partOf[expr] = isFree ? -1 : static_cast<int64_t>(decisions.parts.size());
      decisions.reasons[expr] = isFree ? kBorderView.str() : "";
    }
    if (!isFree)
      decisions.parts.push_back(std::move(*planGroup(problem.groups, group)));
  }
  return plan;
}

double PlannerStep::errorOf(const PlannedGroup &group) const {
  const ConfidenceCosts &confidence = target.costs.confidence;
  return group.predicted.bytes <= static_cast<double>(confidence.smallKernelBytes) ? confidence.smallKernels
                                                                                   : confidence.kernels;
}

bool PlannerStep::contracts(const PlannedGroup &group) const {
  return llvm::any_of(group.choice.exprs,
                      [&](unsigned expr) { return graph.exprs()[expr].kind == ExprKind::contraction; });
}

bool PlannerStep::isFree(const PlannedGroup &group) const {
  return llvm::all_of(group.choice.exprs, [&](unsigned expr) { return isView(graph.exprs()[expr]); });
}

bool PlannerStep::movesUnguarded(const PlannedGroup &group) const {
  return llvm::all_of(group.choice.exprs, [&](unsigned expr) {
    return graph.exprs()[expr].kind == ExprKind::movement && !movesInPieces(expr);
  });
}

bool PlannerStep::movesInPieces(unsigned expr) const {
  const TensorExpr &tensorExpr = graph.exprs()[expr];
  return tensorExpr.inputs.size() > 1 ||
         llvm::any_of(tensorExpr.inputs, [](const TensorAccess &access) { return access.guard != IntegerSet(); });
}

bool PlannerStep::feedsContraction(unsigned expr) const {
  return llvm::any_of(graph.outEdges(expr), [&](unsigned edge) {
    unsigned consumer = graph.edges()[edge].consumer;
    ExprKind kind = graph.exprs()[consumer].kind;
    return kind == ExprKind::contraction || (kind == ExprKind::movement && feedsContraction(consumer));
  });
}

bool PlannerStep::repeatsElements(const PlannedGroup &group) const {
  return llvm::all_of(group.choice.exprs, [&](unsigned expr) {
    const TensorExpr &windows = graph.exprs()[expr];
    return windows.kind == ExprKind::movement && windows.inputs.size() == 1 &&
           !(movesInPieces(expr) && feedsContraction(expr)) &&
           windows.domainSize() > cast<RankedTensorType>(windows.inputs[0].tensor.getType()).getNumElements();
  });
}

double PlannerStep::secondsOf(const PlannedGroup &group, double workingSetBytes) const {
  return isFree(group) ? 0 : estimate(group.work, target, workingSetBytes).seconds;
}

bool PlannerStep::isApart(unsigned group) const {
  return llvm::any_of(decisions.parts[group]->choice.exprs, [&](unsigned expr) { return partition.isApart(expr); });
}

unsigned PlannerStep::groupOf(unsigned group) const {
  return partition.groupOf(decisions.parts[group]->choice.exprs.front());
}

void PlannerStep::keepApart() {
  for (unsigned expr = 0; expr < graph.exprs().size(); ++expr)
    if (restrictions.keepsApart(expr))
      partition.keepApart(expr);
}

void PlannerStep::leave(unsigned expr, StringRef reason) {
  decisions.partOf[expr] = -1;
  decisions.reasons[expr] = reason.str();
}
