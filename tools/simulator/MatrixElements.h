// Elements of small matrices in memory or in registers, and what is added up of them: the same for warps (mma.sync) and
// for warpgroups (wgmma).
#ifndef TILEWRIGHT_SIMULATOR_MATRIXELEMENTS_H
#define TILEWRIGHT_SIMULATOR_MATRIXELEMENTS_H

#include "tools/simulator/Matrices.h"

namespace tilewright::simulator {

inline bool isBytes(MatrixType type) { return type >= MatrixType::u8u8; }
inline uint32_t elementBytes(MatrixType type) { return isBytes(type) ? 1 : type == MatrixType::tf32 ? 4 : 2; }

/// An element of the left or the right factor: of tf32 the last bits of a float are not read.
float elementAt(MatrixType type, bool isLeft, const char *place);

/// A sum's bits with the products of `count` terms added: of floats rounded once, of bytes exact, and wrapped.
uint32_t addProducts(MatrixType type, uint32_t sum, const float *left, const float *right, uint32_t count);

} // namespace tilewright::simulator

#endif
