// A plan while steps make it. A step takes a draft by value and returns the next one; between two steps a draft does
// not change and is verified. writePlan turns the last one into a Plan.
#ifndef TILEWRIGHT_PLAN_GRID_PLANDRAFT_H
#define TILEWRIGHT_PLAN_GRID_PLANDRAFT_H

#include "passes/plan/grid/WritePlan.h"
#include "passes/plan/ir/Partition.h"

namespace tilewright {

struct PlanDraft {
  PlanDraft(const TensorGraph &graph, mlir::Block &block);

  /// Returns an empty string if the draft is legal, else the error: an expression is in a group that does not hold it,
  /// or is left without a reason; a kernel has a group that is gone, or a group has two kernels; groups and kernels
  /// depend on each other in a circle.
  std::string verify() const;

  Decisions decisions;
  Partition partition; ///< of the block's ops, one group for the ops that share a group or a kernel
};

/// Gives each pair of groups, one of which reads a result of the other, the reason why they are not one, unless it has
/// a reason. `why` is called with an edge between the two.
void explainLaunches(const TensorGraph &graph, Decisions &decisions,
                     llvm::function_ref<Declined(const TensorEdge &)> why);

} // namespace tilewright

#endif
