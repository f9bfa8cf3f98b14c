// The iteration space of a part with its tiles: of the spaces that the part may have, the one that is predicted
// fastest.
#ifndef TILEWRIGHT_PLAN_TILING_FINDITERATIONSPACE_H
#define TILEWRIGHT_PLAN_TILING_FINDITERATIONSPACE_H

#include "passes/plan/space/IterationSpace.h"

namespace tilewright {

/// Nothing where the expressions share no space, or no tiles fit the target; `reason` says why.
std::optional<IterationSpace> findIterationSpace(const TensorGraph &graph, const GroupChoice &part,
                                                 const Target &target, std::string *reason = nullptr);

} // namespace tilewright

#endif
