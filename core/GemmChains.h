// The block-order model of the chain of two matmuls (passes/cost/BlockMovement.h) in plain types, for Python.
#ifndef TILEWRIGHT_CORE_GEMMCHAINS_H
#define TILEWRIGHT_CORE_GEMMCHAINS_H

#include "core/Core.h"

namespace tilewright {

struct PlainMovement {
  double moved = 0;       ///< DV: elements
  double bytes = 0;       ///< with results fetched and written back
  double memoryBytes = 0; ///< MU
};

/// By `extents`, `order` (outermost first) and `tiles` of m, n, k and l. Without `reuse` the first product is written
/// and read. f32.
TILEWRIGHT_CORE PlainMovement gemmChainMovement(const std::vector<int64_t> &extents, const std::vector<unsigned> &order,
                                                const std::vector<int64_t> &tiles, bool reuse);

/// The order and tiles that move least in memory of so many bytes; empty if the least tiles do not fit.
TILEWRIGHT_CORE std::tuple<std::vector<unsigned>, std::vector<int64_t>>
gemmChainOptimum(const std::vector<int64_t> &extents, const std::vector<int64_t> &least, double capacityBytes);

} // namespace tilewright

#endif
