// The ops of a part as a function of their own, named and placed by nothing but themselves: equal parts, such as those
// of repeated layers, give equal functions.
#ifndef TILEWRIGHT_PLAN_FUSION_OUTLINE_H
#define TILEWRIGHT_PLAN_FUSION_OUTLINE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "passes/plan/ir/Plan.h"

namespace tilewright {

/// Marks arguments that are weights or constants.
inline constexpr llvm::StringLiteral kWeightAttr = "tilewright.weight";

/// A module with one function: its arguments are what the part reads, its results what leaves it, and its tensor
/// expressions are those of the part, in the same order.
mlir::OwningOpRef<mlir::ModuleOp> outlineGroup(const TensorGraph &graph, const GroupPlan &part);

} // namespace tilewright

#endif
