// Sorts the buffers by size and puts each one into the tightest gap that is free during its live range.
#include "passes/support/BestFit.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace llvm;
using namespace tilewright;

/// Returns the lowest gap, between placed buffers that are live at the same time, that fits with the least waste.
static int64_t fitInto(const LiveBuffer &range, ArrayRef<LiveBuffer> ranges, ArrayRef<unsigned> placed,
                       ArrayRef<int64_t> offsets) {
  SmallVector<unsigned> live(make_filter_range(
      placed, [&](unsigned other) { return range.first <= ranges[other].last && ranges[other].first <= range.last; }));
  sort(live, [&](unsigned a, unsigned b) { return offsets[a] < offsets[b]; });
  int64_t end = 0, best = -1, bestGap = 0;
  for (unsigned other : live) {
    int64_t gap = offsets[other] - end;
    if (gap >= range.bytes && (best < 0 || gap < bestGap)) {
      best = end;
      bestGap = gap;
    }
    end = std::max(end, offsets[other] + ranges[other].bytes);
  }
  return best >= 0 ? best : end;
}

BestFit tilewright::placeByBestFit(ArrayRef<LiveBuffer> ranges) {
  SmallVector<unsigned> order = to_vector(seq<unsigned>(0, ranges.size()));
  stable_sort(order, [&](unsigned a, unsigned b) {
    return std::pair(-ranges[a].bytes, ranges[a].first) < std::pair(-ranges[b].bytes, ranges[b].first);
  });
  BestFit fit{SmallVector<int64_t>(ranges.size()), 0};
  for (auto [i, own] : enumerate(order)) {
    fit.offsets[own] = fitInto(ranges[own], ranges, ArrayRef(order).take_front(i), fit.offsets);
    fit.end = std::max(fit.end, fit.offsets[own] + ranges[own].bytes);
  }
  return fit;
}
