// Reads elements of small matrices and adds up their products. Products of warps (mma.sync) and of warpgroups (wgmma)
// share this arithmetic.
#ifndef TILEWRIGHT_SIMULATOR_MATRIXELEMENTS_H
#define TILEWRIGHT_SIMULATOR_MATRIXELEMENTS_H

#include "tools/simulator/Matrices.h"

namespace tilewright::simulator {

inline bool isBytes(MatrixType type) { return type >= MatrixType::u8u8; }
inline uint32_t elementBytes(MatrixType type) { return isBytes(type) ? 1 : type == MatrixType::tf32 ? 4 : 2; }

/// Returns an element of lhs or rhs. An element of type tf32 ignores the last 13 bits of a float.
float elementAt(MatrixType type, bool isLeft, const char *address);

/// Returns the bits of an accumulator after adding `count` products. Sums of floats are rounded once. Sums of bytes are
/// exact and wrap around.
uint32_t addProducts(MatrixType type, uint32_t sum, const float *left, const float *right, uint32_t count);

} // namespace tilewright::simulator

#endif
