// A factor of a product as the bytes that it was widened from: (byte - zero point), in f32 times a scale, behind any
// movement. Read off what elementwise ops compute, however many of them there are.
#ifndef TILEWRIGHT_NORMALIZE_QUANTIZEDOPERAND_H
#define TILEWRIGHT_NORMALIZE_QUANTIZEDOPERAND_H

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include <optional>

namespace tilewright {

/// A number that is taken off bytes or multiplied with them: one for all, or some for each place along some dims.
struct QuantizationNumber {
  mlir::Value value;     ///< a tensor or a scalar, of i8 or i32, or of f32
  bool isSigned = true;  ///< of a byte
  mlir::AffineMap map;   ///< where it is in a tensor, first from the factor and then from the loops of the contraction
  mlir::TypedAttr known; ///< where it is the same everywhere and known

  bool isTensor() const;
  /// A zero point that is known.
  std::optional<int64_t> integer() const;
  /// In a body, where `element` is that of the tensor; a zero point in i32.
  mlir::Value inBody(mlir::OpBuilder &body, mlir::Location at, mlir::Value element) const;
};

struct QuantizedOperand {
  mlir::Value bytes;   ///< a tensor of i8
  mlir::AffineMap map; ///< where an element is in it, once it is moved, from the loops of the contraction
  bool isSigned = true;
  std::optional<QuantizationNumber> zeroPoint, scale;
  llvm::SmallVector<mlir::Operation *> moved; ///< movement that has to be repeated on the bytes, that next to them last

  /// Whether the zero point is known to be a number that the bytes can be: no difference is above 255 then.
  bool hasByteZeroPoint() const;
  /// Repeats the movement on the bytes.
  void moveBytes(mlir::OpBuilder &builder);
};

/// The factor that a contraction reads of `tensor` at `read`, with loops of the extents `domain`.
std::optional<QuantizedOperand> quantizedFactor(mlir::Value tensor, mlir::AffineMap read,
                                               llvm::ArrayRef<int64_t> domain);

} // namespace tilewright

#endif
