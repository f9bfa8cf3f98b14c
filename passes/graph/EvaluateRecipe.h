// Carries out the recipe of a packed weight whose sources are constants of the module.
#ifndef TILEWRIGHT_GRAPH_EVALUATERECIPE_H
#define TILEWRIGHT_GRAPH_EVALUATERECIPE_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Value.h"

namespace tilewright {

/// Returns the elements of a tensor that is made of constants by the steps of a recipe only, or null if it is not, if
/// its elements are not whole bytes, or if it is swizzled.
mlir::DenseElementsAttr constantOfRecipe(mlir::Value tensor);

} // namespace tilewright

#endif
