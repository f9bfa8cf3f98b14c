// A buffer has one dim per dim that the map depends on, so elements that overlapping windows share are stored several
// times. isKeptByPoints refuses such copies.
#include "passes/layout/BufferedSlice.h"

#include "passes/layout/BufferLines.h"
#include "passes/support/AffineAlgebra.h"

using namespace mlir;

bool tilewright::isKeptByPoints(AffineMap map, ArrayRef<int64_t> extents, ArrayRef<int64_t> shape) {
  int64_t points = 1, elements = 1;
  for (int64_t dim : dimsAsTheyLie(map, extents))
    points *= extents[dim];
  for (int64_t size : shape)
    elements *= size;
  return points <= elements;
}

SmallVector<int64_t> tilewright::bufferedSliceShape(AffineMap map, ArrayRef<int64_t> extents, ArrayRef<int64_t> tiles,
                                                    int64_t elementBytes, bool padded) {
  SmallVector<int64_t> dims = dimsAsTheyLie(map, extents);
  auto shape = llvm::map_to_vector(dims, [&](int64_t dim) { return tiles[dim]; });
  auto isOne = [&](AffineExpr index) {
    return dims.size() > 1 && index.isFunctionOfDim(dims.back()) && index.isFunctionOfDim(dims[dims.size() - 2]);
  };
  if (padded && dims.size() > 1 && llvm::none_of(map.getResults(), isOne))
    shape.back() = sumLine(shape.back(), elementBytes);
  return shape;
}
