// PowerFusion's memory slice in its two-dimensional form (section 4): segments of contiguous elements at a constant
// stride. Pure.
#ifndef TILEWRIGHT_PROGRAM_MOVEMENT_SLICEPATTERN_H
#define TILEWRIGHT_PROGRAM_MOVEMENT_SLICEPATTERN_H

#include "dialects/tile/TileDialect.h"
#include <optional>

namespace tilewright {

/// `num` segments of `width` elements, `stride` elements apart; the stride of a single segment is its width.
struct SlicePattern {
  int64_t num = 1, width = 1, stride = 1;

  bool operator==(const SlicePattern &other) const {
    return num == other.num && width == other.width && stride == other.stride;
  }
  /// Returns an error, or an empty string if there are elements and no segment overlaps the next.
  std::string verify() const;
  /// Prints "num x width by stride".
  void print(llvm::raw_ostream &os) const;
};

/// Returns the pattern of a box of `shape` with strides `strides`, outermost dim first; none if the segments are not at
/// a constant stride.
std::optional<SlicePattern> patternOfBox(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> strides);

/// Returns the pattern of the elements of the slice that one tile of the nest touches at `map`; none if they are not a
/// box or have no such pattern.
std::optional<SlicePattern> patternOf(tile::ComputeOp compute, mlir::AffineMap map, tile::SliceType slice);

} // namespace tilewright

#endif
