// What a warp does with small matrices that are spread over its lanes' registers (mma.sync, ldmatrix).
#ifndef TILEWRIGHT_SIMULATOR_MATRICES_H
#define TILEWRIGHT_SIMULATOR_MATRICES_H

#include <cstdint>

namespace tilewright::simulator {

struct Thread;

// Elements of the factors; sums are f32, of bytes i32. Of bytes: whether those of a, then of b, are signed.
enum class MatrixType : uint32_t { f16, bf16, tf32, u8u8, u8s8, s8u8, s8s8 };

/// Registers of a lane: four of a, two of b, four of c, which the result takes the place of. A 16 x k matrix
/// times a k x 8 one, k elements of 32 bytes together.
struct MatrixRegisters {
  uint32_t a[4], b[2], c[4];
};

/// The registers of all 32 lanes, each the result of its lane afterwards.
void multiplyMatrices(MatrixType type, MatrixRegisters *const (&lanes)[32]);

/// A float of 16 bits: f16 or bf16.
float toFloat(MatrixType type, uint16_t bits);

/// `count` 8 x 8 matrices of 16-bit elements from the rows that lanes 8 i to 8 i + 7 point at, for matrix i.
void loadMatrices(const char *const (&rows)[32], uint32_t count, bool transposed, uint32_t *const (&results)[32]);

} // namespace tilewright::simulator

#endif
