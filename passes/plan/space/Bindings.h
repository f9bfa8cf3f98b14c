// Bindings of a kernel, of which drivers pass only so many. A GPU kernel with more tensors than that has its weights
// behind one another in one, and in another what none but itself reads.
#ifndef TILEWRIGHT_PLAN_SPACE_BINDINGS_H
#define TILEWRIGHT_PLAN_SPACE_BINDINGS_H

#include "passes/target/Target.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <optional>

namespace tilewright {

/// What may lie behind one another in one tensor.
struct WeightGroup {
  mlir::Type element;
  bool isConstant; ///< of the program's text, and not of a parameter file

  bool operator==(const WeightGroup &other) const { return element == other.element && isConstant == other.isConstant; }
};

/// The group of a tensor that is a weight or a small constant; nothing for all others, and for a large weight that
/// somebody else reads as well, which would be stored twice.
std::optional<WeightGroup> weightGroupOf(mlir::Value input);

/// The elements of a constant, in any shape; null for what is none.
mlir::DenseElementsAttr constantBehindViews(mlir::Value tensor);

/// Of a kernel with these tensors, each once; `isPrivate`: whether none but the kernel reads a result.
int64_t countBindings(llvm::ArrayRef<mlir::Value> inputs, llvm::ArrayRef<mlir::Value> outputs,
                      llvm::function_ref<bool(mlir::Value)> isPrivate, const Target &target);

} // namespace tilewright

#endif
