// A run is aligned if its length divides the offset of the access and the strides of all other dims. If a tile has to
// contain it completely, its length must also divide the tile size and the extent.
#include "passes/program/gpu/OperandCopies.h"

#include "dialects/tile/TileAttributeNames.h"
#include "passes/cost/BufferLines.h"
#include "passes/graph/SwizzledLayout.h"
#include "passes/program/Slices.h"
#include "passes/support/AffineAlgebra.h"

#include <numeric>

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

bool tilewright::liesAlong(LoadOp load, int64_t dim) {
  return dim >= 0 && strideAlong(load.getMap(), denseStrides(load.getSlice().getType().getShape()), dim) == 1;
}

bool tilewright::liesByK(LoadOp load, OperandShape shape) {
  return shape.dim < 0 || liesAlong(load, shape.k) || !liesAlong(load, shape.dim);
}

bool tilewright::isWhole(ComputeOp compute, int64_t dim, int64_t count) {
  int64_t size = compute.getSizes()[dim];
  return compute.getExtents()[dim] % size == 0 && size % count == 0;
}

/// Returns the sizes of the pieces into which indices divide the dim (the heads of an attention) and the distances
/// between them; neighbours within a piece are contiguous. Returns none if neighbours are not contiguous.
static std::optional<SmallVector<int64_t>> piecesAlong(AffineMap map, ArrayRef<int64_t> strides, int64_t dim) {
  SmallVector<int64_t> pieces;
  int64_t within = 0;
  for (auto [place, index] : llvm::enumerate(map.getResults())) {
    auto cut = dyn_cast<AffineBinaryOpExpr>(index);
    auto size = cut ? dyn_cast<AffineConstantExpr>(cut.getRHS()) : AffineConstantExpr();
    bool isPlace = index.getKind() == AffineExprKind::Mod, isPiece = index.getKind() == AffineExprKind::FloorDiv;
    if (size && (isPlace || isPiece) && cut.getLHS() == getAffineDimExpr(dim, map.getContext())) {
      pieces.append({size.getValue(), isPiece ? strides[place] : size.getValue()});
      within += isPlace ? strides[place] : 0;
    } else if (std::optional<int64_t> step = strideAlong(map.getSubMap(place), strides.slice(place, 1), dim)) {
      within += *step;
    } else {
      return std::nullopt;
    }
  }
  return within == 1 ? std::optional(pieces) : std::nullopt;
}

/// Returns a divisor of the distances between neighbouring elements along the dim, also if indices divide the dim
/// (heads that share keys).
static int64_t stepAlong(AffineMap map, ArrayRef<int64_t> strides, int64_t dim) {
  if (std::optional<int64_t> stride = strideAlong(map, strides, dim))
    return *stride;
  int64_t step = 0;
  for (auto [index, stride] : llvm::zip(map.getResults(), strides))
    if (index.isFunctionOfDim(dim))
      step = std::gcd(step, stride);
  return std::max<int64_t>(step, 1);
}

/// Returns the greatest power of two that is at most `most` and divides all counts.
static int64_t mostWhole(ArrayRef<int64_t> counts, int64_t most) {
  while (llvm::any_of(counts, [&](int64_t count) { return count % most != 0; }))
    most /= 2;
  return most;
}

int64_t tilewright::alignedElements(ComputeOp compute, SliceType type, AffineMap map, int64_t dim, int64_t most) {
  SmallVector<int64_t> strides = denseStrides(type.getShape()), origin(map.getNumInputs(), 0);
  std::optional<SmallVector<int64_t>> pieces = piecesAlong(map, strides, dim);
  if (!pieces)
    return 1;
  SmallVector<int64_t> wholes = *pieces;
  for (auto [index, stride] : llvm::zip(map.compose(origin), strides))
    wholes.push_back(index * stride);
  for (int64_t other = 0; other < static_cast<int64_t>(compute.getSizes().size()); ++other)
    if (other != dim && compute.getExtents()[other] > 1)
      wholes.push_back(stepAlong(map, strides, other));
  return mostWhole(wholes, most);
}

int64_t tilewright::alignedRun(ComputeOp compute, SliceType type, AffineMap map, int64_t dim, int64_t most) {
  return mostWhole({compute.getSizes()[dim], compute.getExtents()[dim]},
                   alignedElements(compute, type, map, dim, most));
}

bool tilewright::beginsInsideWords(ComputeOp compute, LoadOp load, int64_t dim, int64_t k) {
  SliceType type = load.getSlice().getType();
  int64_t inner = dimOfLines(load.getMap()), bytes = elementBytes(type.getElementType());
  bool alongK = liesByK(load, {dim, k, 1, 1, 1});
  return type.getSpace() == Space::global && 2 * bytes == kLeastAsyncBytes && inner == (alongK ? k : dim) &&
         inner >= 0 && compute.getExtents()[inner] > 1 && !isSwizzled(compute, load) &&
         alignedRun(compute, type, load.getMap(), inner, kLeastAsyncBytes / bytes) == 1;
}

bool tilewright::isSwizzled(ComputeOp compute, LoadOp load) {
  return compute->hasAttr(kSwizzledAttr) && load.getMap().isFunctionOfDim(compute.getVector());
}

int64_t tilewright::kOfSteps(ComputeOp compute, OperandShape shape) {
  return llvm::alignTo(compute.getSizes()[shape.k], shape.step);
}

/// Returns true if an index of a nest is one of its dims with this extent and this tile size.
static bool walksAlike(ComputeOp nest, AffineExpr index, int64_t extent, int64_t size) {
  for (int64_t dim = 0; dim < static_cast<int64_t>(nest.getSizes().size()); ++dim) {
    AffineExpr inTile = getAffineDimExpr(dim, index.getContext());
    if (llvm::is_contained(nest.getOffsetDims(), dim))
      inTile = inTile - getAffineSymbolExpr(dim, index.getContext());
    if (index == inTile)
      return nest.getExtents()[dim] == extent && nest.getSizes()[dim] == size;
  }
  return false;
}

/// Returns true if all accesses to the slice walk the index at `place` in the same way, so that no element beyond a
/// tile's end is in use.
static bool areAllAlike(Value slice, unsigned place, int64_t extent, int64_t size) {
  return llvm::all_of(slice.getUsers(), [&](Operation *user) {
    auto alike = [&](ComputeOp nest, AffineMap map) {
      return nest && walksAlike(nest, map.getResult(place), extent, size);
    };
    if (auto load = dyn_cast<LoadOp>(user))
      return alike(load->getParentOfType<ComputeOp>(), load.getMap());
    if (auto store = dyn_cast<StoreOp>(user))
      return alike(store->getParentOfType<ComputeOp>(), store.getMap());
    auto nest = dyn_cast<ComputeOp>(user);
    return nest && llvm::all_of(llvm::zip(nest.getAccs(), nest.getAccMaps().getAsValueRange<AffineMapAttr>()),
                                [&](auto acc) { return std::get<0>(acc) != slice || alike(nest, std::get<1>(acc)); });
  });
}

/// Returns true if the buffer has room for `count` points of the dim from the tile's beginning on, and elements beyond
/// the tile's end are not in use.
static bool hasRoom(ComputeOp compute, LoadOp load, int64_t dim, int64_t count) {
  if (isWhole(compute, dim, count))
    return true;
  int64_t extent = compute.getExtents()[dim], size = compute.getSizes()[dim];
  bool isIndex = false;
  for (auto [place, index] : llvm::enumerate(load.getMap().getResults())) {
    if (!index.isFunctionOfDim(dim))
      continue;
    if (isIndex || count > load.getSlice().getType().getShape()[place] ||
        !areAllAlike(load.getSlice(), place, extent, size))
      return false;
    isIndex = true;
  }
  // Workgroups that share the K dim may begin inside a tile.
  return isIndex && !compute->getParentOfType<ParallelOp>().getSteps();
}

bool tilewright::isResident(ComputeOp compute, LoadOp load, OperandShape shape) {
  SliceType type = load.getSlice().getType();
  if (type.getSpace() != Space::block || shape.dim < 0)
    return false;
  int64_t inner = liesByK(load, shape) ? shape.k : shape.dim;
  int64_t atom = kAtomBytes / elementBytes(type.getElementType());
  return hasRoom(compute, load, shape.dim, shape.points) && hasRoom(compute, load, shape.k, kOfSteps(compute, shape)) &&
         alignedElements(compute, type, load.getMap(), inner, atom) == atom;
}

int64_t tilewright::copyGranule(ComputeOp compute, LoadOp load, OperandShape shape) {
  SliceType type = load.getSlice().getType();
  int64_t bytes = elementBytes(type.getElementType());
  bool alongK = liesByK(load, shape);
  int64_t inner = alongK ? shape.k : shape.dim;
  if (type.getSpace() == Space::block)
    return 1;
  int64_t most = std::min(kAtomBytes / bytes, alongK ? shape.step : shape.points);
  most = alignedRun(compute, type, load.getMap(), inner, most);
  return most * bytes >= kLeastAsyncBytes ? most : 1;
}

bool tilewright::isCopiedAsync(ComputeOp compute, LoadOp load, OperandShape shape) {
  SliceType type = load.getSlice().getType();
  return type.getSpace() != Space::block && !isSwizzled(compute, load) &&
         (shape.shifted || copyGranule(compute, load, shape) * elementBytes(type.getElementType()) >= kLeastAsyncBytes);
}
