// The form of an expression: the algebra that computes it, where that is not the graph's own. Rewrites of the graph
// mark the ops they create with it, and the plan reports it.
#ifndef TILEWRIGHT_GRAPH_FORM_H
#define TILEWRIGHT_GRAPH_FORM_H

#include "passes/graph/TensorExpr.h"

namespace tilewright {

/// Returns the name of the expression's form; "as-is" for the graph's own algebra.
std::string formOf(const TensorExpr &expr);

} // namespace tilewright

#endif
