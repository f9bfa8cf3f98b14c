// Strides of dense tensors and buffers, and of accesses to them.
#ifndef TILEWRIGHT_SUPPORT_STRIDES_H
#define TILEWRIGHT_SUPPORT_STRIDES_H

#include "mlir/IR/AffineMap.h"
#include <optional>

namespace tilewright {

/// Returns row-major strides in elements.
llvm::SmallVector<int64_t> denseStrides(llvm::ArrayRef<int64_t> shape);

/// Returns the distance, in elements, between the accesses of two points that differ by one in `dim`: 0 if the access
/// does not depend on `dim`, none if the distance is not constant. `strides` are those of what is accessed.
std::optional<int64_t> strideAlong(mlir::AffineMap map, llvm::ArrayRef<int64_t> strides, unsigned dim);

} // namespace tilewright

#endif
