// Emits a tile.compute that only moves elements from along one dim to along another as squares of vectors, transposed
// in registers: a gather takes the time of an element for each lane, this that of a few shuffles for each vector.
#ifndef TILEWRIGHT_CODEGEN_CPU_TRANSPOSEEMITTER_H
#define TILEWRIGHT_CODEGEN_CPU_TRANSPOSEEMITTER_H

#include "passes/codegen/common/NestEmitter.h"

namespace tilewright {

/// Emits `compute` at the builder's insertion point if it copies one slice to another whose innermost dims differ;
/// otherwise emits nothing and returns false.
bool emitTranspose(mlir::OpBuilder &builder, tile::ComputeOp compute, const mlir::IRMapping &values, VectorShape shape);

} // namespace tilewright

#endif
