// Isolates the ops that other compilers compile of a program as functions.
#ifndef TILEWRIGHT_IREE_FOREIGNFUNCTION_H
#define TILEWRIGHT_IREE_FOREIGNFUNCTION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <optional>

namespace tilewright {

/// A function of the ops that compute a tensor, up to tensors that come from elsewhere.
struct ForeignFunction {
  mlir::OwningOpRef<mlir::func::FuncOp> function;
  /// The function's arguments: results of launches, arguments of the program, and globals.
  llvm::SmallVector<mlir::Value> inputs;
};

/// Returns true if the op is a loop or branch with launches, which no other compiler knows.
bool holdsLaunches(mlir::Operation *op);

/// Returns true if a launch, a loop with launches, an import or a global provides the tensor.
bool comesFromElsewhere(mlir::Value value);

/// Returns the operand that IREE's barriers pass on, or the value itself if no barrier produces it.
mlir::Value behindBarriers(mlir::Value value);

/// Returns the tensor behind reshapes and barriers, which has the same elements in the same order.
mlir::Value behindReshapes(mlir::Value value);

/// Returns a function `name` that computes `result` from tensors only, or nothing if it depends on anything else.
std::optional<ForeignFunction> isolate(mlir::Value result, llvm::StringRef name);

} // namespace tilewright

#endif
