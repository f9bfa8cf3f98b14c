// Values that depend on constants and weights alone, so that they can be computed once, when a program is loaded.
#ifndef TILEWRIGHT_IREE_VALUESATLOAD_H
#define TILEWRIGHT_IREE_VALUESATLOAD_H

#include "passes/graph/ParameterRecipe.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace tilewright {

/// Answers which values are known at load. The answers stay valid as long as the IR does not change.
class ValuesAtLoad {
public:
  /// Returns true for constants, weights, and what pure ops compute of those alone.
  bool isKnown(mlir::Value value);
  /// Returns true if the value is known at load and an op computes it.
  bool isComputed(mlir::Value value);

private:
  bool isKnown(mlir::Operation *op);

  llvm::DenseMap<mlir::Operation *, bool> known;
};

/// Returns how a value arranges elements of constants and weights, or nothing if it is computed in another way. `nameOf`
/// gives the names of the parameters of the recipe.
std::optional<ParameterRecipe> arrangementOf(mlir::Value value, llvm::function_ref<std::string(mlir::Value)> nameOf);

/// The function that returns what `tile-compute-at-load` has the initializer compute.
struct FunctionOfValues {
  std::string name; ///< empty if there is none
  llvm::SmallVector<mlir::RankedTensorType> types;
  llvm::StringMap<int64_t> results; ///< the number of the result that holds a global's value
};

FunctionOfValues functionOfValues(mlir::ModuleOp module);

/// Ends the name of that function.
inline constexpr llvm::StringLiteral kAtLoadSuffix = "$at_load";

} // namespace tilewright

#endif
