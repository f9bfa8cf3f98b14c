// Builds a tile.expr: its inputs with their body arguments, and the small ops that bodies consist of.
#ifndef TILEWRIGHT_PLAN_APPLY_EXPRBUILDER_H
#define TILEWRIGHT_PLAN_APPLY_EXPRBUILDER_H

#include "dialects/tile/TileDialect.h"
#include "mlir/IR/Builders.h"
#include "passes/graph/TensorExpr.h"

namespace tilewright {

/// Inputs of the expression to be built. Adding the same access twice returns the same body argument, which is the
/// element, or the table that the body gathers from.
class ExprInputs {
public:
  explicit ExprInputs(mlir::Block &body) : body(body) {}

  mlir::Value add(const TensorAccess &access, mlir::Location loc);
  /// Removes inputs whose element the body does not use.
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

/// Moves `body` into a new expression over `inputs`.
tile::ExprOp buildExpr(mlir::OpBuilder &builder, mlir::Location loc, mlir::TypeRange results, const ExprInputs &inputs,
                       llvm::ArrayRef<int64_t> domain, llvm::ArrayRef<int64_t> reductions, mlir::ArrayAttr resultMaps,
                       mlir::ArrayAttr inits, std::unique_ptr<mlir::Block> body);

} // namespace tilewright

#endif
