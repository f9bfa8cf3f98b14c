// Scalars, vectors of a nest's lanes, and indices of both.
#ifndef TILEWRIGHT_CODEGEN_COMMON_LANEBUILDER_H
#define TILEWRIGHT_CODEGEN_COMMON_LANEBUILDER_H

#include "dialects/tile/TileDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace tilewright {

class LaneBuilder {
protected:
  /// Without a vector dim (-1), everything is a scalar.
  LaneBuilder(mlir::OpBuilder &builder, mlir::Location loc, int64_t rank, int64_t vectorDim, int64_t lanes)
      : builder(builder), loc(loc), vectorDim(vectorDim), lanes(lanes), indices(rank), offsets(rank) {}

  // --- indices -----------------------------------------------------------------------------------------------------

  mlir::Value scalarIndex(mlir::AffineExpr expr);
  /// Element offsets of the lanes from the slice's start.
  mlir::Value linearIndex(tile::SliceType type, mlir::AffineMap map);
  /// A quasi-affine expression on lanes of an integer type; parts that do not depend on the lane stay scalar.
  mlir::Value vectorIndex(mlir::AffineExpr expr, mlir::Type type);
  mlir::Value castIndex(mlir::Value value, mlir::Type type);
  mlir::Value laneNumbers(mlir::Type type);
  mlir::Value tailMask(mlir::Value length);

  // --- small values ------------------------------------------------------------------------------------------------

  mlir::Value toVector(mlir::Value value);
  /// A vector where `other` is one.
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
