// Outlines the ops of a fusion group into a function. Names and locations do not depend on the rest of the module, so
// equal groups, such as those of repeated layers, give equal functions.
#ifndef TILEWRIGHT_PLAN_FUSION_OUTLINE_H
#define TILEWRIGHT_PLAN_FUSION_OUTLINE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "passes/plan/ir/Plan.h"

namespace tilewright {

/// Marks arguments that are weights or constants.
inline constexpr llvm::StringLiteral kWeightAttr = "tilewright.weight";

/// Returns a module with one function. Its arguments are the group's inputs, its results the group's outputs, and its
/// tensor expressions are those of the group in the same order.
mlir::OwningOpRef<mlir::ModuleOp> outlineGroup(const TensorGraph &graph, const GroupPlan &part);

} // namespace tilewright

#endif
