// Choice between lines of an image as a dim of a convolution's contraction, and one dim for all points of the image.
#ifndef TILEWRIGHT_NORMALIZE_LINESOFIMAGES_H
#define TILEWRIGHT_NORMALIZE_LINESOFIMAGES_H

#include "passes/target/CostParameters.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tilewright {

/// Returns true if the lines of a convolution's result stay a dim of the contraction, so that tiles of lines can be
/// handed over to readers. `line` is the loop over the points of a line, `innermost` the innermost loop of K.
bool keepsLines(mlir::linalg::LinalgOp convolution, unsigned line, unsigned innermost, const CpuCosts &costs);

} // namespace tilewright

#endif
