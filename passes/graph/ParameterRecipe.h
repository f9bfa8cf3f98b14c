// A recipe that describes how a stored weight is made of other parameters. It is data, not code, so that whoever writes
// the parameter file can evaluate it anywhere. All steps but products move elements and do not change them, so they need
// to know their size only.
#ifndef TILEWRIGHT_GRAPH_PARAMETERRECIPE_H
#define TILEWRIGHT_GRAPH_PARAMETERRECIPE_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/JSON.h"
#include <optional>
#include <string>
#include <vector>

namespace tilewright {

/// One step of a recipe and its inputs.
struct ParameterRecipe {
  enum class Kind { parameter, reshape, transpose, slice, pad, concat, swizzle, product };

  Kind kind;
  std::vector<int64_t> shape; ///< shape of the step's result
  std::string scope, name;    ///< parameter: where it is stored
  std::vector<int64_t> order; ///< transpose: for each dim of the result, its source dim
  /// Pad: zeros before the first element, by dim; the shape implies those after the last. Slice: elements before the
  /// first one that it has, by dim.
  std::vector<int64_t> low;
  int64_t axis = 0;                   ///< concat: the dim along which parts are joined
  /// Product, of f32: the matrix, row by row, that is multiplied with the part along its first dim. The sums are in f64.
  std::vector<double> matrix;
  int64_t atom = 1;                   ///< swizzle: elements that stay together (graph/SwizzledLayout.h)
  std::vector<ParameterRecipe> parts; ///< inputs of the step: none for a parameter, several for a concat

  /// Returns why the steps do not fit together, or an empty string if they do.
  std::string verify() const;
  /// Prints the recipe on one line: "pad(model::w : 5x70, low 0x0) : 5x128".
  void print(llvm::raw_ostream &os) const;
  std::string toString() const;
  llvm::json::Value toJson() const;
};

/// Returns the parameter that a value is loaded from as a recipe, or nothing if it is not a parameter that may be read.
using ParameterLookup = llvm::function_ref<std::optional<ParameterRecipe>(mlir::Value)>;

/// Returns the recipe of a tensor that is made of parameters by such steps only, or nothing.
std::optional<ParameterRecipe> recipeOf(mlir::Value tensor, ParameterLookup parameterOf);

} // namespace tilewright

#endif
