#include "passes/plan/fusion/PlannerStep.h"

#include "passes/graph/Eligibility.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace tilewright;

/// Predictions are no closer than this. Within it fewer bytes and fewer launches decide.
static constexpr double kRoughness = 1.25;
/// Up to this many bytes waking further workers costs about what they save, so predictions are rougher still.
static constexpr double kFewBytes = 512 * 1024, kRoughnessOfFew = 2;

double tilewright::roughness(double bytes) { return bytes <= kFewBytes ? kRoughnessOfFew : kRoughness; }

std::string tilewright::microseconds(double seconds) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.3g us", seconds * 1e6);
  return text;
}

PlannerState::PlannerState(const TensorGraph &graph, const Target &target, const PlanOptions &options,
                           const PlanRestrictions &restrictions, Block &block)
    : graph(graph), target(target), options(options), restrictions(restrictions), block(block),
      partition(graph, block) {
  decisions.reasons.resize(graph.exprs().size());
  decisions.partOf.assign(graph.exprs().size(), -1);
}

bool PlannerStep::contracts(const PlannedGroup &part) const {
  return llvm::any_of(part.choice.exprs,
                      [&](unsigned expr) { return graph.exprs()[expr].kind == ExprKind::contraction; });
}

bool PlannerStep::isFree(const PlannedGroup &part) const {
  return llvm::all_of(part.choice.exprs, [&](unsigned expr) { return isView(graph.exprs()[expr]); });
}

bool PlannerStep::movesUnguarded(const PlannedGroup &part) const {
  return llvm::all_of(part.choice.exprs, [&](unsigned expr) {
    return graph.exprs()[expr].kind == ExprKind::movement && !movesInPieces(expr);
  });
}

bool PlannerStep::movesInPieces(unsigned expr) const {
  const TensorExpr &tensorExpr = graph.exprs()[expr];
  return tensorExpr.inputs.size() > 1 ||
         llvm::any_of(tensorExpr.inputs, [](const TensorAccess &access) { return access.guard != IntegerSet(); });
}

bool PlannerStep::repeatsElements(const PlannedGroup &part) const {
  return llvm::all_of(part.choice.exprs, [&](unsigned expr) {
    const TensorExpr &windows = graph.exprs()[expr];
    return windows.kind == ExprKind::movement && windows.inputs.size() == 1 &&
           windows.domainSize() > cast<RankedTensorType>(windows.inputs[0].tensor.getType()).getNumElements();
  });
}

double PlannerStep::secondsOf(const PlannedGroup &part, double workingSetBytes) const {
  return isFree(part) ? 0 : predictKernel(part.work, target, workingSetBytes).seconds;
}

bool PlannerStep::isApart(unsigned part) const {
  return llvm::any_of(decisions.parts[part]->choice.exprs, [&](unsigned expr) { return partition.isApart(expr); });
}

unsigned PlannerStep::groupOf(unsigned part) const {
  return partition.groupOf(decisions.parts[part]->choice.exprs.front());
}

void PlannerStep::keepApart() {
  for (unsigned expr = 0; expr < graph.exprs().size(); ++expr)
    if (!restrictions.fuse || restrictions.unfused.contains(expr))
      partition.keepApart(expr);
}

void PlannerStep::leave(unsigned expr, StringRef reason) {
  decisions.partOf[expr] = -1;
  decisions.reasons[expr] = reason.str();
}
