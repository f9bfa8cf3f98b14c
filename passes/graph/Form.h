// The form of an expression: the algebra that computes it, where that is not the graph's own. Rewrites of the graph
// mark the ops they create with it, and the plan reports it.
#ifndef TILEWRIGHT_GRAPH_FORM_H
#define TILEWRIGHT_GRAPH_FORM_H

#include "passes/graph/TensorExpr.h"

namespace tilewright {

/// The discardable attribute that holds the name of an op's form.
inline constexpr llvm::StringLiteral kFormAttr = "tile.form";

/// Returns the name of the expression's form; "as-is" for the graph's own algebra.
std::string formOf(const TensorExpr &expr);

} // namespace tilewright

#endif
