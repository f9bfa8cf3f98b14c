// Describes an operand of a quantized contraction by the bytes that it was computed from: byte - zero point, in f32
// times a scale, possibly moved afterwards. The description is read from the bodies of elementwise ops, whatever their
// number.
#ifndef TILEWRIGHT_NORMALIZE_QUANTIZEDOPERAND_H
#define TILEWRIGHT_NORMALIZE_QUANTIZEDOPERAND_H

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include <optional>

namespace tilewright {

/// A zero point or a scale: one number, or one for each index of some dims.
struct QuantizationNumber {
  mlir::Value value;     ///< a tensor or a scalar, in i8 or i32 (zero point) or in f32 (scale)
  bool isSigned = true;  ///< true if a zero point in i8 is signed
  mlir::AffineMap map;   ///< index in the tensor, first over the operand's dims, finally over the contraction's loops
  mlir::TypedAttr known; ///< the number, if it is the same everywhere and known

  bool isTensor() const;
  /// Returns a known zero point.
  std::optional<int64_t> integer() const;
  /// Creates the number in a body; a zero point is widened to i32. `element` is the tensor's element there.
  mlir::Value inBody(mlir::OpBuilder &body, mlir::Location at, mlir::Value element) const;
};

/// An operand of a contraction that is made of bytes.
struct QuantizedOperand {
  mlir::Value bytes;   ///< a tensor of i8
  mlir::AffineMap map; ///< index of an element in the moved bytes, over the loops of the contraction
  bool isSigned = true;
  std::optional<QuantizationNumber> zeroPoint, scale;
  llvm::SmallVector<mlir::Operation *> moved; ///< movement to repeat on the bytes, last op first

  /// Returns true if the zero point is known to be in the range of the bytes, so that no difference exceeds 255.
  bool hasByteZeroPoint() const;
  /// Repeats the movement on the bytes.
  void moveBytes(mlir::OpBuilder &builder);
};

/// Returns the quantized operand that a contraction with loops of extents `domain` reads from `tensor` with map `read`.
std::optional<QuantizedOperand> quantizedOperand(mlir::Value tensor, mlir::AffineMap read,
                                                 llvm::ArrayRef<int64_t> domain);

} // namespace tilewright

#endif
