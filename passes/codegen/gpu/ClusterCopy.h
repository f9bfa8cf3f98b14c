// What all blocks read, copied once for the blocks of a cluster: each reads a part of it, and writes that to the shared
// memory of all of them.
#ifndef TILEWRIGHT_CODEGEN_GPU_CLUSTERCOPY_H
#define TILEWRIGHT_CODEGEN_GPU_CLUSTERCOPY_H

#include "dialects/tile/TileDialect.h"
#include "mlir/IR/IRMapping.h"

namespace tilewright {

/// Of a part and of its kernel function: how many neighbouring blocks write each other's shared memory; of a copy, that
/// they share it.
inline constexpr llvm::StringLiteral kClusterAttr = "tile.cluster";

/// The attribute's blocks; 1 without it.
int64_t clusterOf(mlir::Operation *op);

/// Emits a copy (TileCopy.h) of a whole binding. The blocks of the cluster have all begun, which a barrier of the
/// cluster before it makes sure of; behind one after it, every block has all of it.
void emitClusterCopy(mlir::OpBuilder &builder, tile::ComputeOp copy, const mlir::IRMapping &values, mlir::Value thread,
                     int64_t threads);

} // namespace tilewright

#endif
