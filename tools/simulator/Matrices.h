// Operations of a warp on small matrices that are distributed over the registers of its lanes (mma.sync, ldmatrix).
#ifndef TILEWRIGHT_SIMULATOR_MATRICES_H
#define TILEWRIGHT_SIMULATOR_MATRICES_H

#include <cstdint>

namespace tilewright::simulator {

struct Thread;

// Element types of lhs and rhs. Accumulators are f32, or i32 for bytes. For bytes, the names give the signedness of lhs
// and rhs.
enum class MatrixType : uint32_t { f16, bf16, tf32, u8u8, u8s8, s8u8, s8s8 };

/// The registers of a lane for the product of a 16 x k matrix with a k x 8 matrix, where k elements have 32 bytes: four
/// registers of a, two of b and four of c. The result replaces c.
struct MatrixRegisters {
  uint32_t a[4], b[2], c[4];
};

/// Multiplies matrices in the registers of all 32 lanes. Afterwards, each lane's `c` holds its part of the result.
void multiplyMatrices(MatrixType type, MatrixRegisters *const (&lanes)[32]);

/// Converts a float of 16 bits, f16 or bf16.
float toFloat(MatrixType type, uint16_t bits);

/// Loads `count` 8 x 8 matrices of 16-bit elements. The rows of matrix i are those to which lanes 8 i to 8 i + 7 point.
void loadMatrices(const char *const (&rows)[32], uint32_t count, bool transposed, uint32_t *const (&results)[32]);

} // namespace tilewright::simulator

#endif
