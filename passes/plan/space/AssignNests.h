// Assigns the roots of a fusion group to loop nests. Roots with the same dims share a nest where possible, since values
// then pass between them in registers instead of buffers. An online softmax reads a maximum in the nest that still
// accumulates it.
#ifndef TILEWRIGHT_PLAN_SPACE_ASSIGNNESTS_H
#define TILEWRIGHT_PLAN_SPACE_ASSIGNNESTS_H

#include "passes/plan/space/IterationSpace.h"

namespace tilewright {

/// Sets the nest and the reference of each root of a space whose roots have their dims.
void assignNests(const TensorGraph &graph, const GroupChoice &group, IterationSpace &space);

} // namespace tilewright

#endif
