// Lines of the buffers beside a contraction on a GPU: how long they are, so that threads which read or write one place
// of several lines find them in different banks. What the plan counts and code generation allocates is the same.
#ifndef TILEWRIGHT_COST_BUFFERLINES_H
#define TILEWRIGHT_COST_BUFFERLINES_H

#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace tilewright {

/// What a step of a contraction's terms takes of a line, at most where it reads in place. Each step is a barrier and a
/// chain of products; on an H200, half as much took 1.2 to 1.5 times as long where one block has an SM.
constexpr int64_t kStepBytes = 128;

constexpr int64_t kPieceBytes = 16; ///< what a thread has of a line at once

/// Elements of a line of so many: an odd number of pieces, so that neighbouring lines begin in different banks. Lines
/// of less than a piece stay.
constexpr int64_t paddedLine(int64_t elements, int64_t elementBytes, int64_t pieceBytes) {
  int64_t piece = std::max<int64_t>(pieceBytes / elementBytes, 1), pieces = llvm::divideCeil(elements, piece);
  return elements < piece ? elements : (pieces | 1) * piece;
}

/// Of what threads leave of a contraction's sums, or read beside them: two neighbours have a piece of wide types each.
constexpr int64_t sumLine(int64_t elements, int64_t elementBytes) {
  constexpr int64_t kWideElement = 4;
  return paddedLine(elements, elementBytes, elementBytes < kWideElement ? kPieceBytes : 2 * kPieceBytes);
}

/// Of what a contraction reads in place, in steps of its terms. Of lines of lanes threads read a piece each at once; of
/// others few, which were left as sums are.
constexpr int64_t operandLine(int64_t elements, int64_t elementBytes, bool ofLanes) {
  if (elements <= 1)
    return elements;
  int64_t steps = llvm::alignTo(elements, std::max<int64_t>(kStepBytes / elementBytes, 1));
  return ofLanes ? paddedLine(steps, elementBytes, kPieceBytes) : sumLine(steps, elementBytes);
}

} // namespace tilewright

#endif
