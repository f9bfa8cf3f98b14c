// Whether a plan can be carried out on a target. Plan::verify() asks the graph alone.
#ifndef TILEWRIGHT_PLAN_APPLY_PLANFORTARGET_H
#define TILEWRIGHT_PLAN_APPLY_PLANFORTARGET_H

#include "passes/plan/ir/Plan.h"
#include "passes/target/Target.h"

namespace tilewright {

/// Empty when the target can carry out what the plan names, else what it cannot, with what it could: a plan made for
/// another target, blocks of threads that a processor has not or a GPU cannot have, a micro kernel that does not exist,
/// is not for the op, or goes by another name. `target` has what the plan's numerics allow (forNumerics).
std::string whyNotFor(const Plan &plan, const TensorGraph &graph, const Target &target);

/// Makes the tiles that ops of a plan list at scope block those of their part, from which they follow.
void followTiles(Plan &plan);

} // namespace tilewright

#endif
