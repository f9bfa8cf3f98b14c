// Builds scalar and vector values for a loop nest, and the indices at which the nest accesses memory. Vectors have one
// element for each lane of the nest's vector dim.
#ifndef TILEWRIGHT_CODEGEN_COMMON_LANEBUILDER_H
#define TILEWRIGHT_CODEGEN_COMMON_LANEBUILDER_H

#include "dialects/tile/TileDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace tilewright {

class LaneBuilder {
protected:
  /// If the nest has no vector dim (-1), all values are scalars.
  LaneBuilder(mlir::OpBuilder &builder, mlir::Location loc, int64_t rank, int64_t vectorDim, int64_t lanes)
      : builder(builder), loc(loc), vectorDim(vectorDim), lanes(lanes), indices(rank), offsets(rank) {}

  // --- indices -----------------------------------------------------------------------------------------------------

  mlir::Value scalarIndex(mlir::AffineExpr expr);
  /// Returns a vector with the offset of each lane's element from the start of the slice, in elements.
  mlir::Value linearIndex(tile::SliceType type, mlir::AffineMap map);
  /// Evaluates a quasi-affine expression in lanes of an integer type. Subexpressions that are the same in all lanes
  /// stay scalar.
  mlir::Value vectorIndex(mlir::AffineExpr expr, mlir::Type type);
  mlir::Value castIndex(mlir::Value value, mlir::Type type);
  mlir::Value laneNumbers(mlir::Type type);
  mlir::Value tailMask(mlir::Value length);

  // --- small values ------------------------------------------------------------------------------------------------

  mlir::Value toVector(mlir::Value value);
  /// Broadcasts the scalar if `other` is a vector.
  mlir::Value toVectorLike(mlir::Value scalar, mlir::Value other);
  mlir::Value firstLanes(mlir::Value vector, int64_t count);
  static mlir::Type withShape(mlir::Value value, mlir::Type element);
  mlir::Value zeros(mlir::VectorType type);
  mlir::Value constant(mlir::TypedAttr value);
  mlir::Value constantIndex(int64_t value);
  mlir::Value add(mlir::Value value, int64_t amount);
  mlir::Value addValues(mlir::Value a, mlir::Value b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value clampedEnd(mlir::Value low, int64_t size, int64_t extent);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  int64_t vectorDim, lanes;
  llvm::SmallVector<mlir::Value> indices, offsets; ///< current index and offset per dim
};

} // namespace tilewright

#endif
