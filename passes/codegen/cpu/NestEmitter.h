// Emits one tile.compute as loops over vectors. Values are emitted at the outermost loop whose dims they depend on, so
// what does not change along a loop is computed once; the vector dim advances by whole vectors, its tail under a mask.
#ifndef TILEWRIGHT_CODEGEN_CPU_NESTEMITTER_H
#define TILEWRIGHT_CODEGEN_CPU_NESTEMITTER_H

#include "dialects/tile/TileDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace tilewright {

/// What the emitter needs to know of the machine.
struct VectorShape {
  int64_t bytes = 64; ///< of one vector register
  int64_t registers = 32;
  int64_t cacheBytes = 32 * 1024; ///< of the innermost cache
};

/// Emits `compute` at the builder's insertion point. `values` maps its offsets to index values and its slices to
/// memrefs.
void emitNest(mlir::OpBuilder &builder, tile::ComputeOp compute, const mlir::IRMapping &values, VectorShape shape);

/// The memref that holds a dense slice; i1 takes a byte.
mlir::MemRefType memrefOf(tile::SliceType slice);

/// How far apart in elements two accesses are whose points differ by one in `dim`: 0 when the access does not depend on
/// it, nothing when the distance is not constant. `strides` are those of the slice.
std::optional<int64_t> strideAlong(mlir::AffineMap map, llvm::ArrayRef<int64_t> strides, unsigned dim);

} // namespace tilewright

#endif
