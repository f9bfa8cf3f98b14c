// Contractions as register blocks compute them: from zero, and in f32 where the graph sums in f16 or bf16. What they
// start from is added at the end, and the result is rounded once there, in an elementwise op that fuses as any other:
// it is the bias, the C of a gemm, or the accumulator that a chain of matmuls hands on. Rejected: accumulating in place
// as linalg does, which would read and write the start once for each tile of the summed dims, and would keep matmuls of
// one input from being merged.
#ifndef TILEWRIGHT_NORMALIZE_WIDENACCUMULATORS_H
#define TILEWRIGHT_NORMALIZE_WIDENACCUMULATORS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tilewright {

/// Rewrites every sum of static shape. Strict numerics keep sums in f16 and bf16 as they are.
void widenAccumulators(mlir::func::FuncOp function, bool isStrict);

} // namespace tilewright

#endif
