// State that all code of a contraction on a GPU shares: the nest, the position of the block in it, and arithmetic on
// indices.
#ifndef TILEWRIGHT_CODEGEN_GPU_GEMM_CONTRACTIONFRAME_H
#define TILEWRIGHT_CODEGEN_GPU_GEMM_CONTRACTIONFRAME_H

#include "dialects/tile/TileDialect.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "passes/program/gpu/OperandCopies.h"
#include "passes/target/CostParameters.h"

namespace tilewright {

class ContractionFrame {
public:
  /// `thread` is the index of the thread in its block, an i32 or index; `values` maps offsets to index values and
  /// slices to memrefs.
  ContractionFrame(mlir::OpBuilder &builder, tile::ComputeOp compute, const mlir::IRMapping &values, mlir::Value thread,
                   int64_t threads, mlir::Value scratch, const GpuCosts &costs);

  mlir::OpBuilder &builder;
  tile::ComputeOp compute;
  const mlir::IRMapping &values;
  mlir::Location loc;
  mlir::Value thread, scratch;
  int64_t threads;
  const GpuCosts &costs;
  llvm::SmallVector<mlir::Value> indices, offsets, ends; ///< for each dim of the nest: current point, begin and end of
                                                         ///< the tile

  mlir::Value constant(int64_t value);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value add(mlir::Value a, int64_t b) { return add(a, constant(b)); }
  mlir::Value multiply(mlir::Value a, int64_t b);
  mlir::Value divide(mlir::Value a, int64_t b); ///< unsigned
  mlir::Value modulo(mlir::Value a, int64_t b); ///< unsigned
  mlir::Value isBelow(mlir::Value a, mlir::Value b);
  /// Returns the conjunction; null stands for true.
  mlir::Value both(mlir::Value a, mlir::Value b);

  bool isWhole(int64_t dim, int64_t count) { return tilewright::isWhole(compute, dim, count); }
  int64_t alignedRun(tile::SliceType type, mlir::AffineMap map, int64_t dim, int64_t most) {
    return tilewright::alignedRun(compute, type, map, dim, most);
  }
  /// Returns the index of an access at the current point.
  llvm::SmallVector<mlir::Value> at(mlir::AffineMap map);
  /// Returns the condition for the current point to be inside a set; null, which means "everywhere", gives null.
  mlir::Value isWithin(mlir::IntegerSet set);

  /// Returns the address of an element of a dense memref, given its row-major offset.
  mlir::Value pointer(mlir::Value memref, mlir::Value element);
  mlir::Value linear(mlir::Value memref, mlir::ValueRange index);

private:
  /// Returns the value of an index at the current point.
  mlir::Value expand(mlir::AffineExpr expr);
  /// Returns an index divided by a constant, or the remainder.
  mlir::Value cut(mlir::AffineBinaryOpExpr expr);
};

} // namespace tilewright

#endif
