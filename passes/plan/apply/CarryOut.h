// Carries out a plan, from level 1 to level 2 of the IR. The rewrite decides nothing.
#ifndef TILEWRIGHT_PLAN_APPLY_CARRYOUT_H
#define TILEWRIGHT_PLAN_APPLY_CARRYOUT_H

#include "passes/plan/ir/Plan.h"

namespace tilewright {

/// Replaces the ops of each kernel of a verified plan by subprograms. `plan` is that of the block, and `graph` the
/// block's graph, whose ops are erased. Of several blocks, one that holds another comes after it. Fails with an error
/// at an op that cannot be raised.
mlir::LogicalResult carryOut(const TensorGraph &graph, const Plan &plan, mlir::Block &block);

} // namespace tilewright

#endif
