// How the operands of a contraction come into shared memory: how many elements are copied at once, and whether by
// cp.async. The planner's predictions, the program's passes and code generation all ask here. Pure.
#ifndef TILEWRIGHT_PROGRAM_GPU_OPERANDCOPIES_H
#define TILEWRIGHT_PROGRAM_GPU_OPERANDCOPIES_H

#include "dialects/tile/TileDialect.h"

namespace tilewright {

/// Bytes that a thread copies at once at most.
inline constexpr int64_t kAtomBytes = 16;
/// Bytes that cp.async copies at least.
inline constexpr int64_t kLeastAsyncBytes = 4;

/// Whether every tile has all points of the dim, and `count` of them or a multiple.
bool isWhole(tile::ComputeOp compute, int64_t dim, int64_t count);
/// How many elements of an access, at most `most` and a power of two, lie together along the dim and are aligned to
/// as many, from any multiple of as many on.
int64_t alignedPlaces(tile::ComputeOp compute, tile::SliceType type, mlir::AffineMap map, int64_t dim, int64_t most);
/// The same wherever the tile is, all of them in the tile or none.
int64_t alignedRun(tile::ComputeOp compute, tile::SliceType type, mlir::AffineMap map, int64_t dim, int64_t most);

/// What a step's slot holds of an operand.
struct OperandShape {
  int64_t dim;          ///< of the nest, along which its points lie; -1: it is one point
  int64_t terms;        ///< the reduced dim
  int64_t points;       ///< of a tile, filled up
  int64_t step;         ///< terms of a step
  int64_t line;         ///< points that a line has room for, where terms are not innermost
  bool shifted = false; ///< lines are copied from the pieces on in which they begin
};

/// Whether the operand is what another nest left in shared memory, and threads read it there: the buffer has room for
/// whole steps of the filled tile, and what is read at once lies together.
bool isResident(tile::ComputeOp compute, tile::LoadOp load, OperandShape shape);

/// Elements that are copied at once on the way to shared memory: as many as lie together and are aligned wherever the
/// block is, and 1 where those are fewer than cp.async takes.
int64_t copyGranule(tile::ComputeOp compute, tile::LoadOp load, OperandShape shape);
/// Whether the operand is of 16 bits, and its lines begin anywhere in a word.
bool beginsInsideWords(tile::ComputeOp compute, tile::LoadOp load, int64_t dim, int64_t terms);
/// Whether it lies in global memory as images of its tiles (graph/SwizzledLayout.h), which bulk copies bring.
bool isImage(tile::ComputeOp compute, tile::LoadOp load);
/// Whether it comes from global memory by cp.async.
bool isCopiedAsync(tile::ComputeOp compute, tile::LoadOp load, OperandShape shape);

/// Whether neighbours along the dim of the nest are neighbours in memory.
bool liesAlong(tile::LoadOp load, int64_t dim);
/// Whether the terms of the operand lie innermost.
bool liesByK(tile::LoadOp load, OperandShape shape);

} // namespace tilewright

#endif
