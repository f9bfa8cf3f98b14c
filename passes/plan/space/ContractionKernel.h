// Which micro kernel computes a contraction of a part: the registry's choice for what it multiplies, as it lies.
#ifndef TILEWRIGHT_PLAN_SPACE_CONTRACTIONKERNEL_H
#define TILEWRIGHT_PLAN_SPACE_CONTRACTIONKERNEL_H

#include "passes/plan/space/IterationSpace.h"

namespace tilewright {

/// Nothing if the root's accesses are none of a register block, or no micro kernel reads them.
std::optional<MicroKernel> microKernelFor(const TensorGraph &graph, const GroupRoot &root, const Target &target);

/// All that a plan may name for the contraction, the most preferred first; empty in the same cases.
std::vector<MicroKernel> microKernelsFor(const TensorGraph &graph, const GroupRoot &root, const Target &target);

/// The one of warpgroups, if the target has one.
std::optional<MicroKernel> warpgroupKernelFor(const TensorGraph &graph, const GroupRoot &root, const Target &target);

/// Whether the operand that a contraction loads by whole vectors lies along the lanes.
bool liesAlongLanes(const TensorGraph &graph, const GroupRoot &root, const ContractionRoles &roles);

/// Whether the same terms lie innermost in both operands.
bool lieAlongK(const TensorExpr &expr, mlir::AffineMap left, mlir::AffineMap right);

} // namespace tilewright

#endif
