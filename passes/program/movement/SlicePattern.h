// PowerFusion's memory slice in its two-dimensional form (section 4): segments of neighbouring elements, and how far
// apart the segments lie. Pure.
#ifndef TILEWRIGHT_PROGRAM_MOVEMENT_SLICEPATTERN_H
#define TILEWRIGHT_PROGRAM_MOVEMENT_SLICEPATTERN_H

#include "dialects/tile/TileDialect.h"
#include <optional>

namespace tilewright {

/// `num` segments of `width` elements, from one to the next `stride` elements; one segment has its width as stride.
struct SlicePattern {
  int64_t num = 1, width = 1, stride = 1;

  bool operator==(const SlicePattern &other) const {
    return num == other.num && width == other.width && stride == other.stride;
  }
  /// Empty if there are elements, and no segment overlaps the next.
  std::string verify() const;
  /// "num x width by stride".
  void print(llvm::raw_ostream &os) const;
};

/// The elements that lie at strides `strides` from each other in a box of `shape`, outermost dim first; nothing where
/// segments are not all equally far apart.
std::optional<SlicePattern> patternOfBox(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> strides);

/// What one tile of the nest touches of the slice at `map`; nothing where that is no box, or has no such pattern.
std::optional<SlicePattern> patternOf(tile::ComputeOp compute, mlir::AffineMap map, tile::SliceType slice);

} // namespace tilewright

#endif
