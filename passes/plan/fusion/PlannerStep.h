// A step of the greedy planner: what the steps share, and the questions that several of them ask of a fusion group.
#ifndef TILEWRIGHT_PLAN_FUSION_PLANNERSTEP_H
#define TILEWRIGHT_PLAN_FUSION_PLANNERSTEP_H

#include "passes/plan/fusion/PlanRestrictions.h"
#include "passes/plan/grid/WritePlan.h"
#include "passes/plan/ir/Partition.h"

namespace tilewright {

/// What the planner is given, and what its steps have decided.
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

class PlannerStep {
public:
  explicit PlannerStep(PlannerState &state)
      : graph(state.graph), target(state.target), options(state.options), restrictions(state.restrictions),
        block(state.block), partition(state.partition), decisions(state.decisions) {}

protected:
  bool contracts(const PlannedGroup &part) const;
  /// A part of reshapes alone costs nothing: whoever reads it reads the dense tensor.
  bool isFree(const PlannedGroup &part) const;
  bool movesUnguarded(const PlannedGroup &part) const;
  /// Concats and pads: IREE makes a dispatch of each piece.
  bool movesInPieces(unsigned expr) const;
  /// Windows that overlap: whoever reads them had better read what is behind them.
  bool repeatsElements(const PlannedGroup &part) const;
  double secondsOf(const PlannedGroup &part, double workingSetBytes) const;
  bool isApart(unsigned part) const;
  unsigned groupOf(unsigned part) const;
  void keepApart();
  void leave(unsigned expr, llvm::StringRef reason);

  const TensorGraph &graph;
  const Target &target;
  const PlanOptions &options;
  const PlanRestrictions &restrictions;
  mlir::Block &block;
  Partition &partition;
  Decisions &decisions;
};

/// The factor within which predictions for a kernel of so many bytes say nothing.
double roughness(double bytes);

/// As messages show it: "12.3 us".
std::string microseconds(double seconds);

/// The steps, in the order in which they run.
void startGroups(PlannerState &state);
void growGroups(PlannerState &state);
void moveBorders(PlannerState &state);
void dropSlowGroups(PlannerState &state);
void packGroups(PlannerState &state);
void dropLoneKernels(PlannerState &state);
void orderKernels(PlannerState &state);

} // namespace tilewright

#endif
