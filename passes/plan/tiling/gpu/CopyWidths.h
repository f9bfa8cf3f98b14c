// How wide the copies of a contraction's operands into shared memory are on a GPU, as far as sizes decide it.
#ifndef TILEWRIGHT_PLAN_TILING_GPU_COPYWIDTHS_H
#define TILEWRIGHT_PLAN_TILING_GPU_COPYWIDTHS_H

#include "passes/plan/space/IterationSpace.h"

namespace tilewright {

constexpr int64_t kLeastCopyBytes = 4; ///< of an asynchronous copy; what is narrower comes element by element

/// Bytes of an operand that are copied at once. Lines that begin anywhere in a word are not copied as words.
int64_t copyBytes(const TensorGraph &graph, const GroupRoot &contraction, unsigned operand);

/// Whether an operand has such lines, and where it can (canShift), a contraction copies them from the piece on in which
/// they begin.
bool beginsInsideWords(const TensorGraph &graph, const GroupRoot &contraction, unsigned operand);

/// Bytes of such a piece: a word of lines of terms, else as many as can be copied at once.
int64_t pieceBytes(const TensorGraph &graph, const GroupRoot &contraction, unsigned operand);

/// Why operands are copied by less than 16 bytes at a time, for the reader; empty where they are not. `but`: an operand
/// that is copied in another way. `shifts`: the contraction can.
std::string narrowCopies(const TensorGraph &graph, const GroupRoot &contraction, bool shifts, int64_t but = -1);

} // namespace tilewright

#endif
