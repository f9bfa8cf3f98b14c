// Predicts the shared memory for a block's buffers: the results that later nests of a tile read, with their live
// ranges. Code generation allocates them by best fit over the same live ranges (tile-allocate-buffers).
#ifndef TILEWRIGHT_PLAN_SPACE_LIVEBUFFERS_H
#define TILEWRIGHT_PLAN_SPACE_LIVEBUFFERS_H

#include "passes/graph/ReducedWalk.h"
#include "passes/plan/space/IterationSpace.h"

namespace tilewright {

/// Returns true if the next nest reads a contraction's accumulators from registers (RegisterHandover), so they need no
/// buffer.
bool isHandedOver(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &contraction);

/// Returns true if a contraction's accumulators stay in registers from block to block of the walked dim
/// (GrowingAccumulators).
bool growsInRegisters(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &contraction);

/// Returns the bytes of all buffers, allocated by best fit. `phases` has one entry per root if tiles walk a dim, else
/// none.
int64_t liveBufferBytes(const TensorGraph &graph, const IterationSpace &space, llvm::ArrayRef<WalkPhase> phases,
                        const Target &target);

} // namespace tilewright

#endif
