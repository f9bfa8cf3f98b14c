// Which tensor expressions our kernels may take, and which IREE handles at least as well by itself. Reasons are for
// people: they end up in remarks and in explain().
#ifndef TILEWRIGHT_GRAPH_ELIGIBILITY_H
#define TILEWRIGHT_GRAPH_ELIGIBILITY_H

#include "passes/graph/TensorGraph.h"
#include <string>
#include <vector>

namespace tilewright {

/// Why code generation cannot take the expression; empty if it can.
std::string whyNotEligible(const TensorExpr &expr);

/// A transcendental function, a root or a division: what costs many instructions.
bool isSpecial(mlir::Operation &op);
/// How many of those the body has for one point of the domain.
int64_t specialOps(const TensorExpr &expr);
/// ... and how many functions that GPUs have no instruction for.
int64_t polynomials(const TensorExpr &expr);
/// Whether the op only renames the elements of a dense tensor: a reshape. IREE and we pay nothing for it.
bool isView(const TensorExpr &expr);

/// For every expression, the contraction whose dispatch IREE 3.13 makes it part of, or -1; `isIrees` says which
/// expressions are contractions that stay with IREE.
std::vector<int64_t> foldsIntoContraction(const TensorGraph &graph, const std::vector<bool> &isIrees);

/// For every expression, whether it depends on constants and weights alone, so that IREE computes it once at load.
std::vector<bool> computedAtLoad(const TensorGraph &graph);
/// What a `util.global.load` of IREE's reads; null if the module does not say.
mlir::Operation *globalOf(mlir::Operation *load);
bool isMutableGlobal(mlir::Operation *global);
/// Whether a tensor is a weight, a constant, or the result of an expression that `computedAtLoad` names.
bool isKnownAtLoad(const TensorGraph &graph, const std::vector<bool> &atLoad, mlir::Value tensor);

} // namespace tilewright

#endif
