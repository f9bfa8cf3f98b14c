// Assigns the roots of a fusion group to loop nests.
#ifndef TILEWRIGHT_PLAN_SPACE_ASSIGNNESTS_H
#define TILEWRIGHT_PLAN_SPACE_ASSIGNNESTS_H

#include "passes/plan/space/IterationSpace.h"

namespace tilewright {

/// Sets the nest and the reference of each root of a space whose roots have their dims.
void assignNests(const TensorGraph &graph, const GroupChoice &group, IterationSpace &space);

} // namespace tilewright

#endif
