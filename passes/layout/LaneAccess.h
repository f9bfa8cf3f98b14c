// The accesses of a CPU's lanes that have instructions of their own. The planner counts on them, and code generation
// emits them.
#ifndef TILEWRIGHT_LAYOUT_LANEACCESS_H
#define TILEWRIGHT_LAYOUT_LANEACCESS_H

#include <cstdint>

namespace tilewright {

/// Greatest stride between lanes, in elements, at which loads and shuffles read them; beyond it they are gathered.
inline constexpr int64_t kMostStrided = 4;

/// Least lanes and least bytes of an element of a tile that is transposed in registers. Narrower elements are gathered.
inline constexpr int64_t kLeastTransposedLanes = 8, kLeastTransposedBytes = 2;

} // namespace tilewright

#endif
