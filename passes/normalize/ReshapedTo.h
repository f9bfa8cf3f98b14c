// Reshapes of tensors to a static shape.
#ifndef TILEWRIGHT_NORMALIZE_RESHAPEDTO_H
#define TILEWRIGHT_NORMALIZE_RESHAPEDTO_H

#include "mlir/IR/Builders.h"

namespace tilewright {

/// Returns the tensor with another shape of as many elements, over one dim if neither shape refines the other.
mlir::Value reshapedTo(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, llvm::ArrayRef<int64_t> shape);

} // namespace tilewright

#endif
