// How a stored weight is made of others: data, not code, so that whoever writes the parameter file evaluates it,
// wherever that is. Only movement: what an element is never changes, so a recipe needs to know no more than its size.
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

/// One step, and what it is applied to.
struct ParameterRecipe {
  enum class Kind { parameter, reshape, transpose, pad, concat, swizzle };

  Kind kind;
  std::vector<int64_t> shape;         ///< of what the step gives
  std::string scope, name;            ///< parameter: where it is stored
  std::vector<int64_t> order;         ///< transpose: per dim of the result, the dim it comes from
  std::vector<int64_t> low;           ///< pad: zeros before the first element, by dim; after the last: what is missing
  int64_t axis = 0;                   ///< concat: the dim along which
  int64_t atom = 1;                   ///< swizzle: elements that stay together (graph/SwizzledLayout.h)
  std::vector<ParameterRecipe> parts; ///< what it is applied to: none for a parameter, several for a concat

  /// Why the steps do not fit together; empty if they do.
  std::string verify() const;
  /// On one line: "pad(model::w : 5x70, low 0x0) : 5x128".
  void print(llvm::raw_ostream &os) const;
  std::string toString() const;
  llvm::json::Value toJson() const;
};

/// The parameter that a value is loaded from, as a recipe; nothing if it is not one that may be read.
using ParameterLookup = llvm::function_ref<std::optional<ParameterRecipe>(mlir::Value)>;

/// How to make a tensor of parameters, if nothing but movement makes it.
std::optional<ParameterRecipe> recipeOf(mlir::Value tensor, ParameterLookup parameterOf);

} // namespace tilewright

#endif
