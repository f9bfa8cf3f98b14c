// Decides how cores of a processor compute the contractions of a plan (layout/Blocking.h), as the last step of
// planning, when tiles and scopes are known. A plan from a file may state the choice of each contraction; it is then
// checked against the same facts.
#ifndef TILEWRIGHT_PLAN_TILING_CPU_PLANNEDBLOCKINGS_H
#define TILEWRIGHT_PLAN_TILING_CPU_PLANNEDBLOCKINGS_H

#include "passes/plan/ir/Plan.h"
#include "passes/target/Target.h"

namespace tilewright {

/// Chooses how cores compute each contraction of a plan that does not state it yet.
void chooseBlockings(Plan &plan, const TensorGraph &graph, const Target &target);

/// Makes contractions that no register block can compute loop nests without a micro kernel. Code generation tries others
/// where tile registers cannot be loaded.
void leaveUnblocked(Plan &plan, const TensorGraph &graph, const Target &target);

/// Returns why a core cannot compute a contraction as the plan states, with the place of the contraction; or an empty
/// string.
std::string whyNotBlocked(const Plan &plan, const TensorGraph &graph, const Target &target);

} // namespace tilewright

#endif
