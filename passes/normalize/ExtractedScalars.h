// Handles scalars that bodies and pads extract from tensors, such as zero points that the program computes.
#ifndef TILEWRIGHT_NORMALIZE_EXTRACTEDSCALARS_H
#define TILEWRIGHT_NORMALIZE_EXTRACTEDSCALARS_H

#include "mlir/IR/Operation.h"

namespace tilewright {

/// Inside `root`, turns tensor elements at fixed indices that bodies of linalg.generic use, possibly with arithmetic on
/// them, into operands, and turns pads of integers with such a scalar into pads with a constant.
void takeScalarsInside(mlir::Operation *root);

} // namespace tilewright

#endif
