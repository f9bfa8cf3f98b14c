// Emits a tile.compute that transposes, that is, reads elements along one dim and writes them along another. It loads
// squares of vectors and transposes them in registers. That takes a few shuffles per vector, whereas a gather takes the
// time of one element per lane.
#ifndef TILEWRIGHT_CODEGEN_CPU_TRANSPOSEEMITTER_H
#define TILEWRIGHT_CODEGEN_CPU_TRANSPOSEEMITTER_H

#include "passes/codegen/common/NestEmitter.h"

namespace tilewright {

/// Emits `compute` at the builder's insertion point if it copies one slice to another with a different innermost dim.
/// Otherwise, emits nothing and returns false.
bool emitTranspose(mlir::OpBuilder &builder, tile::ComputeOp compute, const mlir::IRMapping &values, VectorShape shape);

} // namespace tilewright

#endif
