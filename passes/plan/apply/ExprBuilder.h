// How a tile.expr is put together: its inputs with their body arguments, and the small ops its bodies are made of.
#ifndef TILEWRIGHT_PLAN_APPLY_EXPRBUILDER_H
#define TILEWRIGHT_PLAN_APPLY_EXPRBUILDER_H

#include "dialects/tile/TileDialect.h"
#include "mlir/IR/Builders.h"
#include "passes/graph/TensorExpr.h"

namespace tilewright {

/// Inputs of the expression to be built. Adding the same access twice gives the same body argument.
class ExprInputs {
public:
  explicit ExprInputs(mlir::Block &body) : body(body) {}

  mlir::Value add(mlir::Value tensor, mlir::AffineMap map, mlir::IntegerSet guard, mlir::Location loc);
  /// Drops the inputs whose element nothing in the body uses.
  void eraseUnused();
  llvm::SmallVector<mlir::Value> tensors() const;
  mlir::ArrayAttr maps(mlir::Builder &builder) const;
  mlir::ArrayAttr guards(mlir::Builder &builder) const;

private:
  mlir::Block &body;
  llvm::SmallVector<TensorAccess> accesses;
};

mlir::Value zeroOf(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type);
mlir::Value within(mlir::OpBuilder &builder, mlir::Location loc, mlir::IntegerSet set);
mlir::Value index(mlir::OpBuilder &builder, mlir::Location loc, mlir::AffineMap map);

/// Drops body ops that nothing uses any more.
void eraseDead(mlir::Block &body);

/// Moves `body` into a new expression over `inputs`.
tile::ExprOp buildExpr(mlir::OpBuilder &builder, mlir::Location loc, mlir::TypeRange results, const ExprInputs &inputs,
                       llvm::ArrayRef<int64_t> domain, llvm::ArrayRef<int64_t> reductions, mlir::ArrayAttr resultMaps,
                       mlir::ArrayAttr inits, std::unique_ptr<mlir::Block> body);

} // namespace tilewright

#endif
