// Chooses the micro kernel for a contraction of a fusion group from the target's registry, by its types and by the
// layout of its operands.
#ifndef TILEWRIGHT_PLAN_SPACE_CONTRACTIONKERNEL_H
#define TILEWRIGHT_PLAN_SPACE_CONTRACTIONKERNEL_H

#include "passes/plan/space/IterationSpace.h"

namespace tilewright {

/// Returns the preferred micro kernel that the numerics allow, or nothing if a register block cannot make the root's
/// accesses or no micro kernel fits them.
std::optional<MicroKernel> microKernelFor(const TensorGraph &graph, const GroupRoot &root, const Target &target,
                                          NumericsMode numerics);

/// Returns all micro kernels that a plan may name for the contraction, the preferred one first. The list is empty where
/// microKernelFor returns nothing.
std::vector<MicroKernel> microKernelsFor(const TensorGraph &graph, const GroupRoot &root, const Target &target,
                                         NumericsMode numerics);

/// Returns the micro kernel for warpgroups, if the target has one for the contraction.
std::optional<MicroKernel> warpgroupKernelFor(const TensorGraph &graph, const GroupRoot &root, const Target &target,
                                              NumericsMode numerics);

/// Returns true if N is contiguous in rhs, the operand that a contraction loads by whole vectors.
bool liesAlongLanes(const TensorGraph &graph, const GroupRoot &root, const ContractionRoles &roles,
                    const Target &target);

/// Returns true if the same dim of K is innermost in both operands.
bool lieAlongK(const TensorExpr &expr, mlir::AffineMap left, mlir::AffineMap right);

} // namespace tilewright

#endif
