// The decisions of a plan about how a core of a processor computes a contraction with register blocks. The planner
// makes them once (Blocking.h); the plan's JSON and `#tile.blocking` hold them.
#ifndef TILEWRIGHT_LAYOUT_BLOCKINGCHOICE_H
#define TILEWRIGHT_LAYOUT_BLOCKINGCHOICE_H

#include "dialects/tile/TileDialect.h"

namespace tilewright {

/// `#tile.blocking` says what each field means.
struct BlockingChoice {
  int64_t vectors = 1, unroll = 1;
  int64_t panelK = 0, prefetch = 0;
  bool kOutermost = false;
  int64_t evenRows = 0;
  bool widerLast = false;
};

inline BlockingChoice choiceOf(tile::BlockingAttr attr) {
  return {attr.getVectors(),    attr.getUnroll(),   attr.getPanelK(),   attr.getPrefetch(),
          attr.getKOutermost(), attr.getEvenRows(), attr.getWiderLast()};
}

inline tile::BlockingAttr attrOf(const BlockingChoice &choice, mlir::MLIRContext *context) {
  return tile::BlockingAttr::get(context, choice.vectors, choice.unroll, choice.panelK, choice.prefetch,
                                 choice.kOutermost, choice.evenRows, choice.widerLast);
}

inline llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const BlockingChoice &choice) {
  os << choice.vectors << " vectors";
  if (choice.unroll > 1)
    os << ", " << choice.unroll << " steps per iteration";
  if (choice.panelK > 0)
    os << ", panels of " << choice.panelK << " along K copied";
  if (choice.prefetch > 0)
    os << ", panels of " << choice.prefetch << " bytes prefetched";
  if (choice.kOutermost)
    os << ", K outermost";
  if (choice.evenRows > 0)
    os << ", last rows shared below " << choice.evenRows << " accumulators";
  if (choice.widerLast)
    os << ", a wider last block";
  return os;
}

} // namespace tilewright

#endif
