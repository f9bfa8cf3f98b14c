// The steps of the greedy planner. PlannerState is what they share; each step reads and changes it. PlannerStep is the
// base of their implementations and answers the questions about a fusion group that several of them ask.
#ifndef TILEWRIGHT_PLAN_FUSION_PLANNERSTEP_H
#define TILEWRIGHT_PLAN_FUSION_PLANNERSTEP_H

#include "passes/plan/fusion/PlanRestrictions.h"
#include "passes/plan/grid/WritePlan.h"
#include "passes/plan/ir/Partition.h"

namespace tilewright {

/// The planner's input and the decisions of the steps that have run.
struct PlannerState {
  PlannerState(const TensorGraph &graph, const Target &target, const PlanOptions &options,
               const PlanRestrictions &restrictions, mlir::Block &block);

  const TensorGraph &graph;
  const Target &target;
  const PlanOptions &options;
  const PlanRestrictions &restrictions;
  mlir::Block &block;
  Partition partition;
  Decisions decisions;
};

/// Base class of the steps. A group is given by its number in `decisions.parts` or as a PlannedGroup.
class PlannerStep {
public:
  explicit PlannerStep(PlannerState &state)
      : graph(state.graph), target(state.target), options(state.options), restrictions(state.restrictions),
        block(state.block), partition(state.partition), decisions(state.decisions) {}

protected:
  bool contracts(const PlannedGroup &group) const;
  /// Returns true for a group of reshapes only. It costs nothing, because its readers read the dense tensor.
  bool isFree(const PlannedGroup &group) const;
  /// Returns true for a group that only moves elements, without concats and pads.
  bool movesUnguarded(const PlannedGroup &group) const;
  /// Returns true for concats and pads. IREE makes a dispatch of each piece.
  bool movesInPieces(unsigned expr) const;
  /// Returns true for a group of broadcasts or overlapping windows. Its readers should read their source instead.
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
  mlir::Block &block;
  Partition &partition;
  Decisions &decisions;
};

/// Returns the factor within which two predictions for a kernel that moves this many bytes do not differ.
double roughness(double bytes);

/// Formats a time for messages, such as "12.3 us".
std::string microseconds(double seconds);

// The steps, in the order in which they run; joinAtGrid (plan/grid) runs between packGroups and dropLoneKernels.

/// Starts a group with every expression that Tilewright may compute.
void startGroups(PlannerState &state);
/// Merges groups along edges, and those that read a tensor in common.
void growGroups(PlannerState &state);
/// Hands transposes on to the groups that read them, and removes reshapes from the borders of groups.
void moveBorders(PlannerState &state);
/// Leaves groups to IREE that are not predicted to beat it.
void dropSlowGroups(PlannerState &state);
/// Makes a kernel of each group, and packs small independent ones into one kernel.
void packGroups(PlannerState &state);
/// Leaves to IREE the kernels that are of no use by themselves.
void dropLoneKernels(PlannerState &state);
/// Puts the kernels into launch order.
void orderKernels(PlannerState &state);

} // namespace tilewright

#endif
