// What others compile of a program, as functions of their own.
#ifndef TILEWRIGHT_IREE_FOREIGNFUNCTION_H
#define TILEWRIGHT_IREE_FOREIGNFUNCTION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <optional>

namespace tilewright {

/// The ops behind a tensor, from tensors that come from elsewhere.
struct ForeignFunction {
  mlir::OwningOpRef<mlir::func::FuncOp> function;
  /// Its arguments: what launches make, arguments of the program and globals.
  llvm::SmallVector<mlir::Value> inputs;
};

/// Whether a tensor is computed by none of the ops around it: a launch, an import or a global gives it.
bool comesFromElsewhere(mlir::Value value);

/// What a barrier of IREE's hands on: the value itself for all other ops.
mlir::Value behindBarriers(mlir::Value value);

/// A function `name` without arguments but tensors, that gives `result`; nullopt if it depends on anything else.
std::optional<ForeignFunction> isolate(mlir::Value result, llvm::StringRef name);

} // namespace tilewright

#endif
