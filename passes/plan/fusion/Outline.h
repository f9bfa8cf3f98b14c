// Outlines expressions, such as those of a fusion group, into a function. Names and locations do not depend on the rest of the module, so
// equal groups, such as those of repeated layers, give equal functions.
#ifndef TILEWRIGHT_PLAN_FUSION_OUTLINE_H
#define TILEWRIGHT_PLAN_FUSION_OUTLINE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "passes/plan/ir/Plan.h"

namespace tilewright {

/// Marks arguments that are weights or constants.
inline constexpr llvm::StringLiteral kWeightAttr = "tilewright.weight";

/// Returns a module with one function that computes these expressions. Its arguments are what they read and do not
/// compute, its results what others read, and its tensor expressions are the given ones in the same order.
mlir::OwningOpRef<mlir::ModuleOp> outline(const TensorGraph &graph, llvm::ArrayRef<unsigned> exprs);
/// Returns the text of that module.
std::string outlinedText(const TensorGraph &graph, llvm::ArrayRef<unsigned> exprs);

} // namespace tilewright

#endif
