// The steps along K of a contraction that reads an operand through windows of an image, where K is split into channels
// and points of a window by quotients and remainders.
#ifndef TILEWRIGHT_LAYOUT_WINDOWSTEPS_H
#define TILEWRIGHT_LAYOUT_WINDOWSTEPS_H

#include "passes/target/CostParameters.h"

#include "mlir/IR/AffineMap.h"

namespace tilewright {

/// Returns true if the operand is read through windows along K.
bool hasWindows(mlir::AffineMap map, int64_t k);

/// Returns how many steps along K one iteration of the loop should take, so that quotients and remainders of K are
/// constants or are computed once for all of them: the points of a window or of one of its lines, or a part of the
/// channels. It divides `length` and `tile`, the K of the whole contraction and of one block of it. 1: each step by
/// itself.
int64_t windowSteps(mlir::AffineMap map, int64_t k, int64_t length, int64_t tile, const CpuCosts &costs);

/// Returns how many steps along K stay at one point of a window, such as the channels of an image that has them
/// innermost. 1: none.
int64_t windowRun(mlir::AffineMap map, int64_t k);

} // namespace tilewright

#endif
