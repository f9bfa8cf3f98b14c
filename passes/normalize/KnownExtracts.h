// Elements that a body extracts at known places. Front ends write a slice at a constant index, x[:, 2], as a gather.
#ifndef TILEWRIGHT_NORMALIZE_KNOWNEXTRACTS_H
#define TILEWRIGHT_NORMALIZE_KNOWNEXTRACTS_H

#include "mlir/IR/Operation.h"

namespace tilewright {

/// Replaces each tensor.extract of a body whose indices are loop dims and constants by an operand with an indexing map.
void readKnownExtracts(mlir::Operation *root);

} // namespace tilewright

#endif
