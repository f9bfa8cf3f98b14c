// The block-order model for a chain of two matmuls (passes/cost/BlockMovement.h) in plain types, for Python.
#ifndef TILEWRIGHT_CORE_GEMMCHAINS_H
#define TILEWRIGHT_CORE_GEMMCHAINS_H

#include "core/Core.h"

namespace tilewright {

struct PlainMovement {
  double moved = 0;       ///< moved elements (Chimera's DV)
  double bytes = 0;       ///< moved bytes, with results both fetched and written back
  double memoryBytes = 0; ///< bytes of memory used (Chimera's MU)
};

/// Returns the movement of a chain in f32 with the given extents and tiles of m, n, k and l, in the given loop order
/// (outermost first). Without `reuse`, the first product is written to memory and read again.
TILEWRIGHT_CORE PlainMovement gemmChainMovement(const std::vector<int64_t> &extents, const std::vector<unsigned> &order,
                                                const std::vector<int64_t> &tiles, bool reuse);

/// Returns the order and tiles that move the fewest elements with a memory of `capacityBytes`, or empty vectors if the
/// smallest tiles do not fit.
TILEWRIGHT_CORE std::tuple<std::vector<unsigned>, std::vector<int64_t>>
gemmChainOptimum(const std::vector<int64_t> &extents, const std::vector<int64_t> &least, double capacityBytes);

} // namespace tilewright

#endif
