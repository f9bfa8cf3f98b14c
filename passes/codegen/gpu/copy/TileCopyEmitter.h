// Emits nests that copy a tile as a whole (program/gpu/TileCopy.h).
#ifndef TILEWRIGHT_CODEGEN_GPU_COPY_TILECOPYEMITTER_H
#define TILEWRIGHT_CODEGEN_GPU_COPY_TILECOPYEMITTER_H

#include "passes/program/gpu/TileCopy.h"
#include "passes/target/CostParameters.h"

#include "mlir/IR/IRMapping.h"

namespace tilewright {

/// Emits the copy with vectors of 16 bytes from the first whole sector to the last. If the tile is a single run, single
/// elements are copied before and after it, so that every sector is touched once. Each thread has as many vectors in
/// flight at the same time as the costs say.
void emitTileCopy(mlir::OpBuilder &builder, tile::ComputeOp copy, const mlir::IRMapping &values, mlir::Value thread,
                  int64_t threads, const GpuCosts &costs);

} // namespace tilewright

#endif
