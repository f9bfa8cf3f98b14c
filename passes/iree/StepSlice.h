// Slices of tensors that a loop reads or writes at an offset which depends on the step.
#ifndef TILEWRIGHT_IREE_STEPSLICE_H
#define TILEWRIGHT_IREE_STEPSLICE_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

#include <optional>

namespace tilewright {

/// Neighbouring elements of a tensor. In step i of the loop they begin at element `offset + i * stride`.
struct StepSlice {
  int64_t offset, stride;
};

/// Returns the slice of a tensor of this shape, or nothing if its elements are no neighbours or its offset is not
/// linear in the number of the step.
std::optional<StepSlice> stepSlice(mlir::OffsetSizeAndStrideOpInterface slice, llvm::ArrayRef<int64_t> shape,
                                   mlir::scf::ForOp loop);

} // namespace tilewright

#endif
