// The copies of a contraction's operands to shared memory: how many elements at once, and whether by cp.async. The
// passes on programs and code generation use it. Pure.
#ifndef TILEWRIGHT_PROGRAM_GPU_OPERANDCOPIES_H
#define TILEWRIGHT_PROGRAM_GPU_OPERANDCOPIES_H

#include "dialects/tile/TileDialect.h"
#include "passes/layout/OperandAccess.h"
#include "passes/target/AccessBytes.h"

namespace tilewright {

/// Returns true if every tile has all points of the dim, and their number is a multiple of `count`.
bool isWhole(tile::ComputeOp compute, int64_t dim, int64_t count);
/// Returns how many elements of an access are contiguous along the dim and aligned to their number, from any multiple
/// of that number on: a power of two, at most `most`.
int64_t alignedElements(tile::ComputeOp compute, tile::SliceType type, mlir::AffineMap map, int64_t dim, int64_t most);
/// Returns the same for any offset of the tile, such that each run lies completely inside or outside the tile.
int64_t alignedRun(tile::ComputeOp compute, tile::SliceType type, mlir::AffineMap map, int64_t dim, int64_t most);

/// The part of an operand that a slot holds for one step.
struct OperandShape {
  int64_t dim;          ///< M or N dim of the nest; -1 if the operand has one point
  int64_t k;            ///< K dim
  int64_t points;       ///< points of a tile along `dim`, padded
  int64_t step;         ///< elements of K per step
  int64_t line;         ///< points that a line has room for, if K is not innermost
  bool shifted = false; ///< true if copies start with the piece in which a line begins
  int64_t copy = 0;     ///< bytes that a thread copies at once, as the plan says
};

/// Returns true if another nest left the operand in shared memory and threads can read it there: the buffer has room
/// for whole steps of the padded tile, and elements that are read at once are contiguous.
bool isResident(tile::ComputeOp compute, tile::LoadOp load, OperandShape shape);

/// Returns how many elements are copied to shared memory at once: as many as the plan says, or one if another nest left
/// the operand in a buffer.
int64_t copyGranule(tile::LoadOp load, OperandShape shape);
/// Returns true if the operand has 16-bit elements and its lines may begin in the middle of a word.
bool beginsInsideWords(tile::ComputeOp compute, tile::LoadOp load, int64_t dim, int64_t k);
/// Returns true if the operand has a swizzled layout in global memory (graph/SwizzledLayout.h), which bulk copies read.
bool isSwizzled(tile::ComputeOp compute, tile::LoadOp load);
/// Returns true if cp.async copies the operand from global memory.
bool isCopiedAsync(tile::ComputeOp compute, tile::LoadOp load, OperandShape shape);

/// Returns the access of a load in its nest.
OperandAccess accessOf(tile::LoadOp load);
/// Returns true if neighbours along the dim of the nest are neighbours in memory.
bool liesAlong(tile::LoadOp load, int64_t dim);
/// Returns true if the operand is contiguous along K.
bool liesByK(tile::LoadOp load, OperandShape shape);
/// Returns the size of the K dim, rounded up to whole steps.
int64_t kOfSteps(tile::ComputeOp compute, OperandShape shape);

} // namespace tilewright

#endif
