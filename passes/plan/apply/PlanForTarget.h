// Checks that a target can carry out a plan, which Plan::verify() does not ask: it checks a plan against the graph.
#ifndef TILEWRIGHT_PLAN_APPLY_PLANFORTARGET_H
#define TILEWRIGHT_PLAN_APPLY_PLANFORTARGET_H

#include "passes/plan/ir/Plan.h"
#include "passes/target/Target.h"

namespace tilewright {

/// Returns why the target cannot carry out the plan, and what it could, or an empty string. Reasons are a plan for
/// another target, blocks of threads that a processor does not have or a GPU cannot have, and a micro kernel that does
/// not exist, is not for the op, or has another name.
std::string whyNotFor(const Plan &plan, const TensorGraph &graph, const Target &target);

/// Sets the tiles that ops of a plan list at scope block to those of their group, from which they follow.
void followTiles(Plan &plan);

} // namespace tilewright

#endif
