// A buffer has one dim per dim that the map depends on, so elements that overlapping windows share are stored several
// times. isKeptByPoints refuses such copies.
#include "passes/layout/BufferedSlice.h"

#include "passes/layout/BufferLines.h"
#include "passes/support/AffineAlgebra.h"

using namespace mlir;
using namespace tilewright;

BufferedSlice::BufferedSlice(AffineMap map, ArrayRef<int64_t> extents) : dims(dimsAsTheyLie(map, extents)) {
  isOneRun = dims.size() > 1 && llvm::any_of(map.getResults(), [&](AffineExpr index) {
               return index.isFunctionOfDim(dims.back()) && index.isFunctionOfDim(dims[dims.size() - 2]);
             });
}

bool BufferedSlice::isKeptByPoints(ArrayRef<int64_t> extents, ArrayRef<int64_t> shape) const {
  int64_t points = 1, elements = 1;
  for (int64_t dim : dims)
    points *= extents[dim];
  for (int64_t size : shape)
    elements *= size;
  return points <= elements;
}

SmallVector<int64_t> BufferedSlice::shape(ArrayRef<int64_t> tiles, int64_t elementBytes, bool padded) const {
  auto shape = llvm::map_to_vector(dims, [&](int64_t dim) { return tiles[dim]; });
  if (padded && dims.size() > 1 && !isOneRun)
    shape.back() = sumLine(shape.back(), elementBytes);
  return shape;
}

bool tilewright::isKeptByPoints(AffineMap map, ArrayRef<int64_t> extents, ArrayRef<int64_t> shape) {
  return BufferedSlice(map, extents).isKeptByPoints(extents, shape);
}

SmallVector<int64_t> tilewright::bufferedSliceShape(AffineMap map, ArrayRef<int64_t> extents, ArrayRef<int64_t> tiles,
                                                    int64_t elementBytes, bool padded) {
  return BufferedSlice(map, extents).shape(tiles, elementBytes, padded);
}
