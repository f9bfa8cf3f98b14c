// The buffers of a block of threads: what a tile keeps of the results that later nests read, by where they are live.
// Code generation places them by best fit over the same live ranges, too (tile-allocate-buffers).
#ifndef TILEWRIGHT_PLAN_SPACE_LIVEBUFFERS_H
#define TILEWRIGHT_PLAN_SPACE_LIVEBUFFERS_H

#include "passes/graph/ReducedWalk.h"
#include "passes/plan/space/IterationSpace.h"

namespace tilewright {

/// Whether a contraction's sums are taken over from registers by the nest after it (RegisterHandover), so that they
/// have no buffer.
bool isHandedOver(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &contraction);

/// Whether a contraction's sums grow in registers from block to block of the walked dim (GrowingAccumulators).
bool growsInRegisters(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &contraction);

/// The bytes that they take, placed by best fit. `phases` are those of the roots where tiles walk a dim, else none.
int64_t liveBufferBytes(const TensorGraph &graph, const IterationSpace &space, llvm::ArrayRef<WalkPhase> phases);

} // namespace tilewright

#endif
