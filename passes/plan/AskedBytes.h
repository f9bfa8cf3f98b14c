// What all blocks of a part with contractions ask of the L2: every tile of an operand as often as blocks copy it, in
// whole sectors. Pure; the simulated device counts the same.
#ifndef TILEWRIGHT_PLAN_ASKEDBYTES_H
#define TILEWRIGHT_PLAN_ASKEDBYTES_H

#include "passes/plan/IndexSpace.h"

namespace tilewright {

/// Of an operand of a contraction, copied in steps of so many terms; `kept`: blocks of a walked dim find it in shared
/// memory.
double askedOfOperand(const TensorGraph &graph, const IndexSpace &space, const PartRoot &contraction, unsigned operand,
                      int64_t step, bool kept);

/// Of everything else that the part reads and writes in global memory.
double askedBesideOperands(const TensorGraph &graph, const IndexSpace &space);

} // namespace tilewright

#endif
