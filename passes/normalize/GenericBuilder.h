// A builder of tensor expressions from what one element of them is.
#ifndef TILEWRIGHT_NORMALIZE_GENERICBUILDER_H
#define TILEWRIGHT_NORMALIZE_GENERICBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

namespace tilewright {

/// Creates `linalg.generic` ops in front of an op, with its location.
class GenericBuilder {
public:
  /// Returns an element from those of the inputs.
  using Body = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::ValueRange)>;
  /// Returns a total with one more value.
  using Combiner = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Value, mlir::Value)>;

  explicit GenericBuilder(mlir::Operation *op) : builder(op), loc(op->getLoc()) {}

  mlir::Value number(mlir::OpBuilder &at, mlir::Type type, const llvm::APInt &value) const;
  mlir::Value number(mlir::OpBuilder &at, mlir::Type type, int64_t value) const;

  /// Returns the index of a loop as i32.
  mlir::Value index(mlir::OpBuilder &at, int64_t loop) const;

  /// Creates an expression whose elements are made of those of `inputs`, which it reads through `maps`.
  mlir::Value elementwise(mlir::RankedTensorType type, mlir::ValueRange inputs, llvm::ArrayRef<mlir::AffineMap> maps,
                          Body body);

  /// The same for inputs that are read at the place of each element.
  mlir::Value elementwise(mlir::RankedTensorType type, mlir::ValueRange inputs, Body body);

  /// Creates a reduction from `start` over a last loop beside those of `type`. `maps` are those of the inputs.
  mlir::Value reduce(mlir::RankedTensorType type, mlir::ValueRange inputs, llvm::ArrayRef<mlir::AffineMap> maps,
                     mlir::TypedAttr start, Combiner combine, Body body);

  /// The same for a sum of integers.
  mlir::Value sum(mlir::RankedTensorType type, mlir::ValueRange inputs, llvm::ArrayRef<mlir::AffineMap> maps,
                  Body body);

  /// The map of a tensor whose dim `dim` the last of `rank` + 1 loops runs along, in place of that dim's own loop.
  mlir::AffineMap alongLast(int64_t rank, int64_t dim);

  mlir::OpBuilder builder;
  mlir::Location loc;
};

/// Returns which dims of a tensor whose dim `dim` was cut into blocks belong to each of the `rank` dims before.
llvm::SmallVector<mlir::ReassociationIndices> blockGroups(int64_t rank, int64_t dim);

} // namespace tilewright

#endif
