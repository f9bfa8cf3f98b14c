// Decides which tensor expressions Tilewright's kernels may take, and which ones IREE handles at least as well by
// itself. The reasons are for people: they appear in remarks and in explain().
#ifndef TILEWRIGHT_GRAPH_ELIGIBILITY_H
#define TILEWRIGHT_GRAPH_ELIGIBILITY_H

#include "passes/graph/TensorGraph.h"
#include <string>
#include <vector>

namespace tilewright {

/// Returns why code generation cannot take the expression, or an empty string if it can.
std::string whyNotEligible(const TensorExpr &expr);

/// Returns true for an op that costs many instructions: a transcendental function, a root or a division.
bool isSpecial(mlir::Operation &op);
/// Returns how many of those the body has per point of the domain.
int64_t specialOps(const TensorExpr &expr);
/// Returns how many functions the body has, per point of the domain, that GPUs have no instruction for.
int64_t polynomials(const TensorExpr &expr);
/// Returns true if the op only renames the elements of a dense tensor: a reshape, which costs nothing.
bool isView(const TensorExpr &expr);

/// Returns, for every expression, the contraction whose dispatch IREE 3.13 fuses it into, or -1. `isIrees` marks the
/// contractions that IREE compiles.
std::vector<int64_t> foldsIntoContraction(const TensorGraph &graph, const std::vector<bool> &isIrees);

/// Returns, for every expression, whether it depends on constants and weights only, so that IREE computes it once at
/// load time. Contractions of a batch read weights that all of its matrices share in place; only with `repeatsWeights`,
/// for passes that lay out weights in place of their repetition, is that computed at load as well.
std::vector<bool> computedAtLoad(const TensorGraph &graph, bool repeatsWeights = false);
/// Returns the global that IREE's `util.global.load` reads; null if the module does not contain it.
mlir::Operation *globalOf(mlir::Operation *load);
bool isMutableGlobal(mlir::Operation *global);
/// Returns true if a tensor is a weight, a constant, or the result of an expression that `computedAtLoad` marks.
bool isKnownAtLoad(const TensorGraph &graph, const std::vector<bool> &atLoad, mlir::Value tensor);

} // namespace tilewright

#endif
