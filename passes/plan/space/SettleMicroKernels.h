// Makes a plan name the micro kernels that code generation will use. Code generation replaces a named micro kernel if
// the target has none of that name for the operand types, or if it cannot read an operand that an earlier nest left in
// shared memory. Planners name the right one; plans from files may not.
#ifndef TILEWRIGHT_PLAN_SPACE_SETTLEMICROKERNELS_H
#define TILEWRIGHT_PLAN_SPACE_SETTLEMICROKERNELS_H

#include "passes/plan/ir/Plan.h"
#include "passes/plan/space/IterationSpace.h"
#include "passes/target/Target.h"

namespace tilewright {

/// Returns a group's expressions, and the scopes that the plan gives to the edges between them.
GroupChoice choiceOf(const Plan &plan, const TensorGraph &graph, const GroupPlan &group);
/// Returns the roots of such a group, with the dims of the space that the plan gives them.
std::vector<GroupRoot> plannedRoots(const TensorGraph &graph, const GroupChoice &choice, const GroupPlan &group);

/// A contraction whose micro kernel was replaced, with both names. `dropsGemm` is true if the plan stated how blocks
/// compute it, which was for the other micro kernel.
struct SettledKernel {
  unsigned op;
  std::string before, after, reason;
  bool dropsGemm;
};

/// Replaces the micro kernel names of all contractions in a plan for blocks of threads, and returns the
/// replacements.
std::vector<SettledKernel> settleMicroKernels(Plan &plan, const TensorGraph &graph, const Target &target);

} // namespace tilewright

#endif
