// Emits one tile.compute that is a contraction as the work of a block of threads (Chimera 5, Welder 3.1): the tile's
// sums lie in the registers of all threads over the whole reduction, the operands pass through shared memory step by
// step.
#ifndef TILEWRIGHT_CODEGEN_GPU_CONTRACTIONBLOCK_H
#define TILEWRIGHT_CODEGEN_GPU_CONTRACTIONBLOCK_H

#include "passes/codegen/cpu/MatchContraction.h"
#include "passes/cost/SumTiling.h"
#include "passes/target/Target.h"

#include "mlir/IR/IRMapping.h"

namespace tilewright {

/// What was decided for a nest with a micro kernel.
struct ContractionPlan {
  Contraction contraction;
  MicroKernel kernel;
  SumTiling tiling;
  int64_t terms; ///< the reduced dim that is walked in steps
};

/// Nothing for a nest that no micro kernel of the target computes, or not with so many threads; `reason` says why.
std::optional<ContractionPlan> planContraction(tile::ComputeOp compute, int64_t threads, const Target &target,
                                               std::string *reason = nullptr);

/// `thread` is the index of the thread in its block, an i32; `scratch` has the tiling's shared bytes.
void emitContraction(mlir::OpBuilder &builder, tile::ComputeOp compute, const ContractionPlan &plan,
                     const mlir::IRMapping &values, mlir::Value thread, int64_t threads, mlir::Value scratch);

} // namespace tilewright

#endif
