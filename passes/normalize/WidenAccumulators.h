// Gives sums the form that register blocks compute: they start from zero, and are computed in f32 where the graph uses
// f16 or bf16. An elementwise op at the end adds the start and rounds once; it fuses like any other. The start is a
// bias, the C of a GEMM, or the accumulator that a chain of matmuls passes on. Accumulating in place, as linalg does,
// was rejected: it would read and write the start once for each tile along K, and would keep matmuls that share an
// input from being merged.
#ifndef TILEWRIGHT_NORMALIZE_WIDENACCUMULATORS_H
#define TILEWRIGHT_NORMALIZE_WIDENACCUMULATORS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tilewright {

/// Rewrites every sum of static shape. With strict numerics, sums in f16 and bf16 stay as they are. Returns true if
/// there are any.
bool widenAccumulators(mlir::func::FuncOp function, bool isStrict);

} // namespace tilewright

#endif
