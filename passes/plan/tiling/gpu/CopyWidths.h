// Predicts the width of copies of a contraction's operands into shared memory on a GPU, as far as tensor sizes decide
// it. The plan's own widths (PlannedGemms.h) follow when tiles are known.
#ifndef TILEWRIGHT_PLAN_TILING_GPU_COPYWIDTHS_H
#define TILEWRIGHT_PLAN_TILING_GPU_COPYWIDTHS_H

#include "passes/plan/space/IterationSpace.h"

namespace tilewright {

/// Returns the bytes of an operand that one copy moves. Lines that begin inside a word are not copied by words.
int64_t copyBytes(const TensorGraph &graph, const GroupRoot &contraction, unsigned operand);

/// Returns true if lines of the operand begin inside words. If its micro kernel can shift (canShift), the contraction
/// copies such lines from the enclosing piece on.
bool beginsInsideWords(const TensorGraph &graph, const GroupRoot &contraction, unsigned operand);

/// Returns the bytes of such a piece: a word if K is contiguous in the operand, else the widest copy.
int64_t pieceBytes(const TensorGraph &graph, const GroupRoot &contraction, unsigned operand);
} // namespace tilewright

#endif
