// The form of an expression: the algebra that computes it, where that is not the graph's own. Rewrites of the graph
// mark the ops they create with it, and the plan reports it.
#ifndef TILEWRIGHT_GRAPH_FORM_H
#define TILEWRIGHT_GRAPH_FORM_H

#include "dialects/tile/TileDialect.h"
#include "passes/graph/TensorExpr.h"

namespace tilewright {

/// Returns the form of the expression; `asIs` for the graph's own algebra.
tile::Form formOf(const TensorExpr &expr);

/// Returns the form with which an op is marked, or nothing.
std::optional<tile::Form> markedForm(mlir::Operation *op);

/// Marks an op with its form.
void setForm(mlir::Operation *op, tile::Form form);

/// Returns true for a maximum along a dim that is walked in blocks, which is used while it grows (ReducedWalk.h). With
/// a causal bound, blocks without a counting point are skipped.
inline bool isOnlineSoftmaxOfBlocks(tile::Form form) {
  return form == tile::Form::onlineSoftmaxOfBlocks || form == tile::Form::onlineSoftmaxWithBound;
}

/// Returns true if the numerics of a subprogram, which it may lack, name a form for which `isSuch` holds.
bool namesForm(std::optional<tile::NumericsAttr> numerics, llvm::function_ref<bool(tile::Form)> isSuch);

} // namespace tilewright

#endif
