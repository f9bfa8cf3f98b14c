// Slices of tensors that a loop reads or writes at an offset which depends on the step.
#ifndef TILEWRIGHT_GRAPH_STEPSLICE_H
#define TILEWRIGHT_GRAPH_STEPSLICE_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

#include <limits>
#include <optional>

namespace tilewright {

/// Neighbouring elements of a tensor. In step i of the loop they begin at element `offset + i * stride`. They stay
/// where they are up to step `from`, and from step `to` on.
struct StepSlice {
  int64_t offset, stride;
  int64_t from = 0, to = std::numeric_limits<int64_t>::max();

  bool moves() const { return stride != 0; }
  bool alwaysMoves() const { return from == 0 && to == std::numeric_limits<int64_t>::max(); }
};

/// Returns the slice of a tensor of this shape, or nothing if its elements are no neighbours or its offset is not
/// linear in the number of the step, between bounds.
std::optional<StepSlice> stepSlice(mlir::OffsetSizeAndStrideOpInterface slice, llvm::ArrayRef<int64_t> shape,
                                   mlir::scf::ForOp loop);

/// Returns the tensor that a value is a reshape of, or the value.
mlir::Value throughViews(mlir::Value value);

} // namespace tilewright

#endif
