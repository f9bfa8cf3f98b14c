// What all blocks read, copied once for the blocks of a cluster: each reads a part of it, and writes that to the shared
// memory of all of them.
#ifndef TILEWRIGHT_CODEGEN_GPU_COPY_CLUSTERCOPY_H
#define TILEWRIGHT_CODEGEN_GPU_COPY_CLUSTERCOPY_H

#include "passes/program/gpu/ClusterAttr.h"
#include "mlir/IR/IRMapping.h"

namespace tilewright {

/// Emits a copy (TileCopy.h) of a whole binding. The blocks of the cluster have all begun, which a barrier of the
/// cluster before it makes sure of; behind one after it, every block has all of it.
void emitClusterCopy(mlir::OpBuilder &builder, tile::ComputeOp copy, const mlir::IRMapping &values, mlir::Value thread,
                     int64_t threads);

} // namespace tilewright

#endif
