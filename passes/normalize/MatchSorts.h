// Recognises sorts and searches of IREE, whose ops are unregistered here, by their operands and comparisons.
#ifndef TILEWRIGHT_NORMALIZE_MATCHSORTS_H
#define TILEWRIGHT_NORMALIZE_MATCHSORTS_H

#include "mlir/IR/Operation.h"
#include <optional>

namespace tilewright {

/// The order of the elements of one operand.
struct Order {
  unsigned key; ///< number of the operand
  bool isDescending, isUnsigned;
  bool isTotal = false; ///< true if floats are ordered by sign and magnitude: -0 before 0, and NaNs at both ends
};

/// A stable sort along a dim.
struct Sort {
  int64_t dim;
  int64_t kept;               ///< number of elements that are read of each sorted row
  std::optional<Order> order; ///< nothing: the op's comparison gives the order, of several operands for instance
};

/// Returns the number of elements that a slice takes from the front of each row, if it takes all rows.
std::optional<int64_t> takenFromFront(mlir::Operation *user, int64_t dim);

/// Returns the order if the op compares the elements of one operand, and integers can be ordered like these.
std::optional<Order> orderOf(mlir::Operation *op);
/// Returns true if the op has a comparison that can be computed anywhere: of its arguments and of constants.
bool comparesElements(mlir::Operation *op);

/// Recognises a sort of rows of known length. If several operands are compared, floats are not compared as they are,
/// because with a NaN that is no order.
std::optional<Sort> matchSort(mlir::Operation *op);
/// Recognises the search for the first elements of each row and their positions.
std::optional<Sort> matchTopK(mlir::Operation *op);

} // namespace tilewright

#endif
