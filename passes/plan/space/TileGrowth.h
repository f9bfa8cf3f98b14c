// Searches tile sizes by growing tiles (Welder 4.1, after Roller). The search starts with the smallest tile that suits
// the hardware. From a tile that fits, it tries the next larger ones, first along the dim that reduces traffic most. It
// always grows the fastest known tile, since fast tiles are near other fast tiles, and it is bounded.
#ifndef TILEWRIGHT_PLAN_SPACE_TILEGROWTH_H
#define TILEWRIGHT_PLAN_SPACE_TILEGROWTH_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace tilewright {

/// A tile, as the index of its size in each dim's list of sizes in ascending order.
using TilePlace = llvm::ArrayRef<size_t>;

struct VisitedTile {
  bool fits = false;  ///< true if the tile fits; if not, no larger tile fits either
  double seconds = 0; ///< predicted, if the tile fits
};

/// Visits at most `most` tiles, each once, and returns their number. `counts` has the number of sizes of each dim;
/// `traffic` returns the bytes that all tiles of a size move.
size_t growTiles(llvm::ArrayRef<size_t> counts, size_t most, llvm::function_ref<double(TilePlace)> traffic,
                 llvm::function_ref<VisitedTile(TilePlace)> visit);

} // namespace tilewright

#endif
