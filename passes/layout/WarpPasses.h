// Cost of one memory access of a warp, computed from the addresses of its lanes. Everything here is a pure function.
#ifndef TILEWRIGHT_LAYOUT_WARPPASSES_H
#define TILEWRIGHT_LAYOUT_WARPPASSES_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>

namespace tilewright {

/// Passes relative to the best case of the access; 1 is optimal.
struct WarpPasses {
  double global = 1;        ///< over cache lines of 128 bytes
  double shared = 1;        ///< over the 32 banks of 4 bytes
  bool wholeSectors = true; ///< true if the warp reads all of each 32-byte sector that it touches
};

/// Returns the passes over the banks in which the lanes access `bytes` each at these addresses of shared memory. Wide
/// accesses are split into half or quarter warps; the result is their average.
double bankPasses(llvm::ArrayRef<int64_t> addresses, int64_t bytes);

/// Returns the passes of a warp in which each `group` neighbouring lanes access `bytes` per lane side by side in one
/// row of `rowBytes`, and the next group accesses the next row.
WarpPasses warpPasses(int64_t group, int64_t rowBytes, int64_t bytes);

} // namespace tilewright

#endif
