// Padded line lengths of the shared-memory buffers beside a contraction on a GPU. Lines are padded so that threads that
// access the same offset of several lines hit different banks. The planner counts with the same lengths that code
// generation allocates.
#ifndef TILEWRIGHT_LAYOUT_BUFFERLINES_H
#define TILEWRIGHT_LAYOUT_BUFFERLINES_H

#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace tilewright {

constexpr int64_t kPieceBytes = 16; ///< bytes of a line that a thread accesses at once

/// Returns the padded length in elements: an odd number of pieces, so that neighbouring lines begin in different banks.
/// Lines shorter than a piece stay as they are.
constexpr int64_t paddedLine(int64_t elements, int64_t elementBytes, int64_t pieceBytes) {
  int64_t piece = std::max<int64_t>(pieceBytes / elementBytes, 1), pieces = llvm::divideCeil(elements, piece);
  return elements < piece ? elements : (pieces | 1) * piece;
}

/// Returns the line length of a buffer that holds accumulators of a contraction, or values read beside them. Two
/// neighbouring accumulators of a wide type make up one piece each.
constexpr int64_t sumLine(int64_t elements, int64_t elementBytes) {
  constexpr int64_t kWideElement = 4;
  return paddedLine(elements, elementBytes, elementBytes < kWideElement ? kPieceBytes : 2 * kPieceBytes);
}

/// Returns the line length of an operand that a contraction reads in place, in steps along K of at most `stepBytes` of a
/// line. With `ofLanes`, many threads read a piece each at once; otherwise few do, and the buffer is laid out as
/// accumulators are.
constexpr int64_t operandLine(int64_t elements, int64_t elementBytes, int64_t stepBytes, bool ofLanes) {
  if (elements <= 1)
    return elements;
  int64_t steps = llvm::alignTo(elements, std::max<int64_t>(stepBytes / elementBytes, 1));
  return ofLanes ? paddedLine(steps, elementBytes, kPieceBytes) : sumLine(steps, elementBytes);
}

} // namespace tilewright

#endif
