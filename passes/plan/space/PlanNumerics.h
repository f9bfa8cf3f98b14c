// What a kernel does to the numbers of its ops, as the plan declares it: decided for a mode, checked against the graph.
#ifndef TILEWRIGHT_PLAN_SPACE_PLANNUMERICS_H
#define TILEWRIGHT_PLAN_SPACE_PLANNUMERICS_H

#include "passes/plan/ir/Plan.h"
#include "passes/target/Target.h"

namespace tilewright {

/// The same machine with the micro kernels that the mode allows.
Target forNumerics(const Target &target, NumericsMode mode);

/// What an op's body and accumulators do. `regroups`: points that it reduces lie in different lanes.
Numerics decideNumerics(const TensorExpr &expr, NumericsMode mode, bool regroups);

/// Why an op cannot have the numerics that a plan declares for it in this mode; empty if it can.
std::string checkNumerics(const TensorExpr &expr, const OpPlan &op, NumericsMode mode);

/// Whether the consumer may be given the producer's result before its rounding to bf16 or f16.
bool mayStayUnrounded(const TensorGraph &graph, const TensorEdge &edge);
/// Whether what arrives over the edge was rounded on the way from what it was computed from; movement does not round.
bool isRounded(const TensorGraph &graph, const TensorEdge &edge);

/// Whether the op divides floats, and the mode lets a number that many elements share become a multiplication by its
/// reciprocal.
bool mayUseReciprocals(const TensorExpr &expr, NumericsMode mode);

/// The types that a declaration such as "f32, i64" names.
llvm::SmallVector<llvm::StringRef> accumulationTypes(const Numerics &numerics);

} // namespace tilewright

#endif
