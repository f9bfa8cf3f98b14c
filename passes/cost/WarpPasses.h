// What an access of a warp costs by where its lanes' addresses lie. Pure.
#ifndef TILEWRIGHT_COST_WARPPASSES_H
#define TILEWRIGHT_COST_WARPPASSES_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>

namespace tilewright {

/// Passes over what an access could have taken at best; 1 is none beyond.
struct WarpPasses {
  double global = 1;        ///< over lines of 128 bytes
  double shared = 1;        ///< over the 32 banks of 4 bytes
  bool wholeSectors = true; ///< whether the warp reads all of each 32-byte sector that it touches
};

/// Passes over the banks in which lanes that each take `bytes` from these addresses of shared memory do so, on average
/// over the halves or quarters of the warp that wide accesses go by.
double bankPasses(llvm::ArrayRef<int64_t> addresses, int64_t bytes);

/// Of a warp whose groups of `group` neighbours each take `bytes` a lane side by side from a row of `rowBytes`, rows
/// one behind the other.
WarpPasses warpPasses(int64_t group, int64_t rowBytes, int64_t bytes);

} // namespace tilewright

#endif
