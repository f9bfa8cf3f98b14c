// Merges the dims of the access from the innermost outwards while they stay contiguous, then while they continue one
// stride.
#include "passes/program/movement/SlicePattern.h"

#include "passes/program/Slices.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

std::string SlicePattern::verify() const {
  if (num < 1 || width < 1)
    return "a pattern without elements";
  return num > 1 && stride < width ? "segments overlap" : "";
}

void SlicePattern::print(llvm::raw_ostream &os) const { os << num << " x " << width << " by " << stride; }

std::optional<SlicePattern> tilewright::patternOfBox(ArrayRef<int64_t> shape, ArrayRef<int64_t> strides) {
  SlicePattern pattern;
  for (auto [size, stride] : llvm::zip(llvm::reverse(shape), llvm::reverse(strides))) {
    if (size == 1)
      continue;
    if (pattern.num == 1 && stride == pattern.width) {
      pattern.width *= size;
      pattern.stride = pattern.width;
    } else if (pattern.num == 1) {
      pattern.num = size;
      pattern.stride = stride;
    } else if (stride == pattern.stride * pattern.num) {
      pattern.num *= size;
    } else {
      return std::nullopt;
    }
  }
  if (!pattern.verify().empty())
    return std::nullopt;
  return pattern;
}

std::optional<SlicePattern> tilewright::patternOf(ComputeOp compute, AffineMap map, SliceType slice) {
  SmallVector<int64_t> strides =
      slice.getStrides().empty() ? denseStrides(slice.getShape()) : SmallVector<int64_t>(slice.getStrides());
  // Collect one side of the box for each dim of the nest that the access depends on, the largest stride first.
  SmallVector<std::pair<int64_t, int64_t>> sides;
  for (int64_t dim = 0; dim < static_cast<int64_t>(compute.getSizes().size()); ++dim) {
    if (compute.getSizes()[dim] == 1 || !map.isFunctionOfDim(dim))
      continue;
    std::optional<int64_t> stride = strideAlong(map, strides, dim);
    if (!stride || *stride <= 0)
      return std::nullopt;
    sides.push_back({*stride, compute.getSizes()[dim]});
  }
  llvm::stable_sort(sides, [](const auto &a, const auto &b) { return a.first > b.first; });
  return patternOfBox(llvm::to_vector(llvm::make_second_range(sides)), llvm::to_vector(llvm::make_first_range(sides)));
}
