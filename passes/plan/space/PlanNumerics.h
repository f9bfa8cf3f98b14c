// Decides what a kernel may change about the numbers of its ops in a numerics mode, and checks a plan's declaration of
// it against the graph.
#ifndef TILEWRIGHT_PLAN_SPACE_PLANNUMERICS_H
#define TILEWRIGHT_PLAN_SPACE_PLANNUMERICS_H

#include "passes/plan/ir/Plan.h"
#include "passes/target/Target.h"

namespace tilewright {

/// Returns why plans for the target cannot have the numerics, and what to choose; or an empty string.
std::string whyNotNumerics(NumericsMode mode, const Target &target);

/// Decides the numerics of an op's body and accumulators. `regroups` is true if points that the op reduces are in
/// different lanes.
Numerics decideNumerics(const TensorExpr &expr, NumericsMode mode, bool regroups);

/// Returns why an op cannot have the numerics that a plan declares for it in this mode, or an empty string.
std::string checkNumerics(const TensorExpr &expr, const OpPlan &op, NumericsMode mode);

/// Returns true if the consumer may be given the producer's result before its rounding to bf16 or f16.
bool mayStayUnrounded(const TensorGraph &graph, const TensorEdge &edge);
/// Returns true if the value of the edge was rounded on the way from the op that computed it. Movement does not round.
bool isRounded(const TensorGraph &graph, const TensorEdge &edge);

/// Returns true if the op divides floats and the mode allows replacing a divisor that many elements share with a
/// multiplication by its reciprocal.
bool mayUseReciprocals(const TensorExpr &expr, NumericsMode mode);

/// Returns the types listed in a declaration such as "f32, i64".
llvm::SmallVector<llvm::StringRef> accumulationTypes(const Numerics &numerics);

} // namespace tilewright

#endif
