// Numbers that bodies and pads take from tensors, as zero points that a program computes.
#ifndef TILEWRIGHT_NORMALIZE_EXTRACTEDSCALARS_H
#define TILEWRIGHT_NORMALIZE_EXTRACTEDSCALARS_H

#include "mlir/IR/Operation.h"

namespace tilewright {

/// Makes operands of the elements at fixed places of tensors that bodies of linalg.generic inside of `root` take from
/// outside, at most computed on from there, and has integers padded with such a number padded with a constant.
void takeScalarsInside(mlir::Operation *root);

} // namespace tilewright

#endif
