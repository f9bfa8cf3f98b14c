// Copies data that all blocks read only once per cluster: each block reads a part of it and writes that part to the
// shared memory of all blocks of the cluster.
#ifndef TILEWRIGHT_CODEGEN_GPU_COPY_CLUSTERCOPY_H
#define TILEWRIGHT_CODEGEN_GPU_COPY_CLUSTERCOPY_H

#include "mlir/IR/IRMapping.h"
#include "passes/program/gpu/ClusterAttr.h"

namespace tilewright {

/// Emits a copy (TileCopy.h) of a whole binding. A cluster barrier before it must ensure that all blocks of the cluster
/// have started; behind a cluster barrier after it, every block has the complete data.
void emitClusterCopy(mlir::OpBuilder &builder, tile::ComputeOp copy, const mlir::IRMapping &values, mlir::Value thread,
                     int64_t threads);

} // namespace tilewright

#endif
