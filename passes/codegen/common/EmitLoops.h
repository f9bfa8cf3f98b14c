// Emits branches and loops around what a function emits. The builder is afterwards where it was before, behind them.
#ifndef TILEWRIGHT_CODEGEN_COMMON_EMITLOOPS_H
#define TILEWRIGHT_CODEGEN_COMMON_EMITLOOPS_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

namespace tilewright {

/// Emits code that runs only if the condition holds, or always if the condition is null.
inline void emitIf(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value condition,
                   llvm::function_ref<void()> body) {
  if (!condition)
    return body();
  auto branch = mlir::scf::IfOp::create(builder, loc, condition, /*withElseRegion=*/false);
  mlir::OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  body();
}

/// Emits code that computes values if the condition holds, or always if it is null. Otherwise they are those given.
inline llvm::SmallVector<mlir::Value> emitIf(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value condition,
                                             mlir::ValueRange otherwise,
                                             llvm::function_ref<llvm::SmallVector<mlir::Value>()> body) {
  if (!condition)
    return body();
  if (otherwise.empty()) {
    emitIf(builder, loc, condition, [&] { body(); });
    return {};
  }
  auto branch = mlir::scf::IfOp::create(builder, loc, otherwise.getTypes(), condition, /*withElseRegion=*/true);
  mlir::OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  mlir::scf::YieldOp::create(builder, loc, body());
  builder.setInsertionPointToStart(branch.elseBlock());
  mlir::scf::YieldOp::create(builder, loc, otherwise);
  return llvm::SmallVector<mlir::Value>(branch.getResults());
}

inline void emitFor(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value low, mlir::Value high, mlir::Value step,
                    llvm::function_ref<void(mlir::Value index)> body) {
  auto loop = mlir::scf::ForOp::create(builder, loc, low, high, step);
  mlir::OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

/// Emits a loop that carries values in registers: at least one. `body` returns those of the next iteration.
inline mlir::scf::ForOp
emitFor(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value low, mlir::Value high, mlir::Value step,
        mlir::ValueRange carried,
        llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value index, mlir::ValueRange now)> body) {
  auto loop = mlir::scf::ForOp::create(builder, loc, low, high, step, carried);
  mlir::OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  mlir::scf::YieldOp::create(builder, loc, body(loop.getInductionVar(), loop.getRegionIterArgs()));
  return loop;
}

} // namespace tilewright

#endif
