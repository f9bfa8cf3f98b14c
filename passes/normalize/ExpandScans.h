// Running sums as sums over the points before each point, which fuse with what surrounds them.
#ifndef TILEWRIGHT_NORMALIZE_EXPANDSCANS_H
#define TILEWRIGHT_NORMALIZE_EXPANDSCANS_H

#include "passes/target/CostParameters.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tilewright {

/// Replaces running sums (iree_linalg_ext.scan) along short dims by reductions: y[i] is the sum of x[j] over j <= i, in
/// the order of j. Long sums of integers, which are exact in any order, are taken in blocks: each element adds the sum
/// of the blocks before its own to the running sum inside its block.
void expandScans(mlir::func::FuncOp function, const CommonCosts &costs);

} // namespace tilewright

#endif
