// Emits one tile.compute that is a contraction as register-blocked loops around a micro kernel (Chimera 5): a block of
// rows by a few vectors of lanes stays in registers over the whole reduction.
#ifndef TILEWRIGHT_CODEGEN_CPU_CONTRACTIONEMITTER_H
#define TILEWRIGHT_CODEGEN_CPU_CONTRACTIONEMITTER_H

#include "passes/codegen/cpu/NestEmitter.h"

namespace tilewright {

/// Emits `compute` at the builder's insertion point if it is a sum of products in which one operand is the same for all
/// lanes and the other contiguous along them; otherwise emits nothing and returns false.
bool emitContraction(mlir::OpBuilder &builder, tile::ComputeOp compute, const mlir::IRMapping &values,
                     VectorShape shape);

} // namespace tilewright

#endif
