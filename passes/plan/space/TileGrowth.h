// Which tiles a search looks at (Welder 4.1, after Roller): the smallest that the hardware likes first, and of a tile
// that fits the next larger ones, along the dim first that cuts traffic most. Pure, and bounded: what is quick is found
// near what is quick, so tiles grow from the quickest that is known.
#ifndef TILEWRIGHT_PLAN_SPACE_TILEGROWTH_H
#define TILEWRIGHT_PLAN_SPACE_TILEGROWTH_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace tilewright {

/// A tile as the place of its size in each dim's list of sizes, smallest first.
using TilePlace = llvm::ArrayRef<size_t>;

struct VisitedTile {
  bool fits = false;  ///< a larger one may; of one that does not, none does
  double seconds = 0; ///< predicted, if it fits
};

/// Visits at most `most` tiles, each once, and returns how many. `counts` says how many sizes each dim has, `traffic`
/// how many bytes all tiles of a place move.
size_t growTiles(llvm::ArrayRef<size_t> counts, size_t most, llvm::function_ref<double(TilePlace)> traffic,
                 llvm::function_ref<VisitedTile(TilePlace)> visit);

} // namespace tilewright

#endif
