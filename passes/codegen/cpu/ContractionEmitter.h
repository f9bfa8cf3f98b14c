// Emits one tile.compute that is a contraction as register-blocked loops around a micro kernel (Chimera 5). A block of
// the result, some rows by a few vectors, stays in registers during the whole reduction.
#ifndef TILEWRIGHT_CODEGEN_CPU_CONTRACTIONEMITTER_H
#define TILEWRIGHT_CODEGEN_CPU_CONTRACTIONEMITTER_H

#include "dialects/tile/TileDialect.h"
#include "passes/target/Target.h"

#include "mlir/IR/IRMapping.h"

namespace tilewright {

/// Emits `compute` at the builder's insertion point if it is a sum of products in which one operand is the same for all
/// lanes and the other is contiguous along them. Otherwise, emits nothing and returns false. The micro kernel is the
/// one that the nest names, if the target has it and it can read the packed layout, or else the fastest one that can.
/// Fails with an error if no code can be emitted for the `tile.blocking` of the nest.
mlir::FailureOr<bool> emitContraction(mlir::OpBuilder &builder, tile::ComputeOp compute, const mlir::IRMapping &values,
                                      const Target &target);

} // namespace tilewright

#endif
