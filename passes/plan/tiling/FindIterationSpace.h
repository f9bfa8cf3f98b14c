// Finds the iteration space of a fusion group with its tiles. Of all possible spaces, it takes the one that is
// predicted to be fastest.
#ifndef TILEWRIGHT_PLAN_TILING_FINDITERATIONSPACE_H
#define TILEWRIGHT_PLAN_TILING_FINDITERATIONSPACE_H

#include "passes/plan/space/IterationSpace.h"

namespace tilewright {

/// Returns nothing if the expressions share no space or no tiles fit the target; then `reason` explains it.
std::optional<IterationSpace> findIterationSpace(const TensorGraph &graph, const GroupChoice &group,
                                                 const Target &target, std::string *reason = nullptr);

} // namespace tilewright

#endif
