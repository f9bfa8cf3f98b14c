// The steps that explorers are made of. A step takes a draft of a plan by value and returns the next one; runSteps
// verifies the draft after each. PlannerStep is the base of their implementations and answers the questions about a
// fusion group that several of them ask.
#ifndef TILEWRIGHT_PLAN_FUSION_PLANNERSTEP_H
#define TILEWRIGHT_PLAN_FUSION_PLANNERSTEP_H

#include "passes/plan/fusion/FusionProblem.h"
#include "passes/plan/grid/PlanDraft.h"

namespace tilewright {

/// A step and its name, for messages.
struct PlanStep {
  llvm::StringLiteral name;
  PlanDraft (*run)(const FusionProblem &problem, PlanDraft plan);
};

/// Runs the steps one after another and verifies the draft after each. An illegal draft is a fatal error that names the
/// step.
PlanDraft runSteps(const FusionProblem &problem, PlanDraft plan, llvm::ArrayRef<PlanStep> steps);

/// Runs the steps on a draft that leaves all expressions.
PlanDraft runSteps(const FusionProblem &problem, llvm::ArrayRef<PlanStep> steps);

/// Base class of the steps: the problem, and the draft that the step changes. A group is given by its number in
/// `decisions.parts` or as a PlannedGroup.
class PlannerStep {
public:
  PlannerStep(const FusionProblem &problem, PlanDraft &plan)
      : graph(problem.graph), target(problem.machine), options(problem.options), restrictions(problem.restrictions),
        groups(problem.groups), block(problem.block()), partition(plan.partition), decisions(plan.decisions) {}

protected:
  /// Returns the error of predictions for the group beside other kernels.
  double errorOf(const PlannedGroup &group) const;
  bool contracts(const PlannedGroup &group) const;
  /// Returns true for a group of reshapes only. It costs nothing, because its readers read the dense tensor.
  bool isFree(const PlannedGroup &group) const;
  /// Returns true for a group that only moves elements, without concats and pads.
  bool movesUnguarded(const PlannedGroup &group) const;
  /// Returns true for concats and pads. IREE makes a dispatch of each piece.
  bool movesInPieces(unsigned expr) const;
  /// Returns true if a contraction reads the expression's result, directly or through movement.
  bool feedsContraction(unsigned expr) const;
  /// Returns true for a group of broadcasts, overlapping windows or pads. Its readers should read their source instead;
  /// contractions cannot read a padded tensor's source, because that has a guard.
  bool repeatsElements(const PlannedGroup &group) const;
  double secondsOf(const PlannedGroup &group, double workingSetBytes) const;
  /// Returns true if the restrictions keep an expression of the group apart.
  bool isApart(unsigned group) const;
  /// Returns the number that the partition has for the group.
  unsigned groupOf(unsigned group) const;
  /// Tells the partition which expressions the restrictions keep apart.
  void keepApart();
  /// Leaves the expression to IREE.
  void leave(unsigned expr, llvm::StringRef reason);

  const TensorGraph &graph;
  const Target &target;
  const PlanOptions &options;
  const PlanRestrictions &restrictions;
  const GroupProblem &groups;
  mlir::Block &block;
  Partition &partition;
  Decisions &decisions;
};

/// Makes these the groups of a draft, each of which can be planned. Groups of reshapes are left as the borders of kernels.
PlanDraft withGroups(const FusionProblem &problem, PlanDraft plan, llvm::ArrayRef<llvm::ArrayRef<unsigned>> groups);

/// Formats a time for messages, such as "12.3 us".
std::string microseconds(double seconds);

// The steps, in the order in which the greedy explorer runs them; joinAtGrid (plan/grid) runs after packKernels.

/// Starts a group with every expression that Tilewright may compute.
PlanDraft startGroups(const FusionProblem &problem, PlanDraft plan);
/// Merges groups along edges, and those that read a tensor in common.
PlanDraft growGroups(const FusionProblem &problem, PlanDraft plan);
/// Hands transposes on to the groups that read them, on a GPU.
PlanDraft handTransposesOn(const FusionProblem &problem, PlanDraft plan);
/// Removes reshapes from the borders of groups.
PlanDraft trimViews(const FusionProblem &problem, PlanDraft plan);
/// Leaves groups to IREE that are not predicted to beat it.
PlanDraft dropSlowGroups(const FusionProblem &problem, PlanDraft plan);
/// Makes a kernel of each group.
PlanDraft makeKernels(const FusionProblem &problem, PlanDraft plan);
/// Packs small independent kernels into one.
PlanDraft packKernels(const FusionProblem &problem, PlanDraft plan);
/// Leaves to IREE the kernels that are of no use by themselves.
PlanDraft dropLoneKernels(const FusionProblem &problem, PlanDraft plan);
/// Puts the kernels into launch order.
PlanDraft orderKernels(const FusionProblem &problem, PlanDraft plan);

} // namespace tilewright

#endif
