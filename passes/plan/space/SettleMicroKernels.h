// Plans name micro kernels, and code generation takes another one where the target has none of the name for what is
// multiplied, or where it cannot read an operand that an earlier nest left in shared memory. Planners name what is
// taken; plans from files may not.
#ifndef TILEWRIGHT_PLAN_SPACE_SETTLEMICROKERNELS_H
#define TILEWRIGHT_PLAN_SPACE_SETTLEMICROKERNELS_H

#include "passes/plan/ir/Plan.h"
#include "passes/plan/space/IterationSpace.h"
#include "passes/target/Target.h"

namespace tilewright {

/// A part's expressions, and the scopes that the plan gives the edges between them.
GroupChoice choiceOf(const Plan &plan, const TensorGraph &graph, const GroupPlan &part);

/// A contraction that names another micro kernel now.
struct SettledKernel {
  unsigned op;
  std::string before, after, reason;
};

/// Makes all contractions of a plan for a GPU name what is taken for them.
std::vector<SettledKernel> settleMicroKernels(Plan &plan, const TensorGraph &graph, const Target &target);

/// Registers that a thread of the part's blocks is counted with, of so many threads: what its contractions keep, and
/// no fewer than are counted where nobody has said.
int64_t countedRegisters(const GroupPlan &part, const TensorGraph &graph, int64_t threads, const Target &target);

} // namespace tilewright

#endif
