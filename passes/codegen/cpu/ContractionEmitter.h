// Emits one tile.compute that is a contraction as register-blocked loops around a micro kernel (Chimera 5): a block of
// rows by a few vectors of lanes stays in registers over the whole reduction.
#ifndef TILEWRIGHT_CODEGEN_CPU_CONTRACTIONEMITTER_H
#define TILEWRIGHT_CODEGEN_CPU_CONTRACTIONEMITTER_H

#include "dialects/tile/TileDialect.h"
#include "passes/target/Target.h"

#include "mlir/IR/IRMapping.h"

namespace tilewright {

/// Emits `compute` at the builder's insertion point if it is a sum of products in which one operand is the same for all
/// lanes and the other contiguous along them; otherwise emits nothing and returns false. The micro kernel is the one
/// that the nest names, where the target has it and it reads what was packed; otherwise the quickest that does.
bool emitContraction(mlir::OpBuilder &builder, tile::ComputeOp compute, const mlir::IRMapping &values,
                     const Target &target);

} // namespace tilewright

#endif
