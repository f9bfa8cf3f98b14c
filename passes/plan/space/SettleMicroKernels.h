// Makes a plan name micro kernels that can compute its contractions. A kernel is replaced if the target has none of its
// name for the operand types, or if it cannot read an operand that an earlier nest leaves in shared memory, which is not
// known before the whole plan is. A plan from a file that names such a kernel is refused.
#ifndef TILEWRIGHT_PLAN_SPACE_SETTLEMICROKERNELS_H
#define TILEWRIGHT_PLAN_SPACE_SETTLEMICROKERNELS_H

#include "passes/plan/ir/Plan.h"
#include "passes/plan/space/IterationSpace.h"
#include "passes/target/Target.h"

namespace tilewright {

/// Returns a group's expressions, and the scopes that the plan gives to the edges between them.
GroupChoice choiceOf(const Plan &plan, const TensorGraph &graph, const GroupPlan &group);
/// Returns the number of a group's first input among the inputs of its kernel.
unsigned firstInputOf(const Plan &plan, const TensorGraph &graph, const KernelPlan &kernel, const GroupPlan &group);
/// Returns the roots of such a group, with the dims of the space that the plan gives them.
std::vector<GroupRoot> plannedRoots(const TensorGraph &graph, const GroupChoice &choice, const GroupPlan &group);

/// A contraction whose micro kernel was replaced, with both names.
struct SettledKernel {
  unsigned op;
  std::string before, after, reason;
};

/// Replaces the micro kernel names of all contractions in a plan for blocks of threads, and returns the
/// replacements.
std::vector<SettledKernel> settleMicroKernels(Plan &plan, const TensorGraph &graph, const Target &target);

} // namespace tilewright

#endif
