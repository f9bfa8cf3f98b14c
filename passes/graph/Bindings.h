// Counts and groups the bindings of a kernel, since drivers limit their number. A GPU kernel with more tensors than
// that stores its weights one after another in one binding, and the results that only it reads in another.
#ifndef TILEWRIGHT_GRAPH_BINDINGS_H
#define TILEWRIGHT_GRAPH_BINDINGS_H

#include "passes/target/Target.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <optional>

namespace tilewright {

/// Weights that may be stored one after another in one tensor.
struct WeightGroup {
  mlir::Type element;
  bool isConstant; ///< true if the elements are in the program's text, not in a parameter file

  bool operator==(const WeightGroup &other) const { return element == other.element && isConstant == other.isConstant; }
};

/// Returns the group of a tensor that is a weight or a small constant, else nothing. A large weight that other kernels
/// read as well has no group, since it would be stored twice.
std::optional<WeightGroup> weightGroupOf(mlir::Value input, const Target &target);

/// Returns the elements of a constant, through reshapes; null if the tensor is no constant.
mlir::DenseElementsAttr constantBehindViews(mlir::Value tensor);

/// Returns the number of bindings of a kernel with these tensors, each listed once. `isPrivate` returns true for a
/// result that only the kernel reads.
int64_t countBindings(llvm::ArrayRef<mlir::Value> inputs, llvm::ArrayRef<mlir::Value> outputs,
                      llvm::function_ref<bool(mlir::Value)> isPrivate, const Target &target);

} // namespace tilewright

#endif
