#ifndef TILEWRIGHT_PLAN_APPLY_UNITDIMS_H
#define TILEWRIGHT_PLAN_APPLY_UNITDIMS_H

#include "dialects/tile/TileDialect.h"
#include "passes/graph/TensorExpr.h"

namespace tilewright {

/// Removes dims of one point, which have no dim in the iteration space, from an op that was raised from the expression.
void dropUnitDims(tile::ExprOp op, const TensorExpr &expr);

} // namespace tilewright

#endif
