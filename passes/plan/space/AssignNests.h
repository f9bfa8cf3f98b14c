// Which loop nest computes each root of a part.
#ifndef TILEWRIGHT_PLAN_SPACE_ASSIGNNESTS_H
#define TILEWRIGHT_PLAN_SPACE_ASSIGNNESTS_H

#include "passes/plan/space/IterationSpace.h"

namespace tilewright {

/// Sets the nest and the reference of each root of a space whose dims are placed.
void assignNests(const TensorGraph &graph, const GroupChoice &part, IterationSpace &space);

} // namespace tilewright

#endif
