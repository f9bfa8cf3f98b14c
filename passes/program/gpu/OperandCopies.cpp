// Asks layout/OperandAccess.h about the access of a load, and looks at the buffer that it reads.
#include "passes/program/gpu/OperandCopies.h"

#include "dialects/tile/TileAttributeNames.h"
#include "passes/graph/SwizzledLayout.h"
#include "passes/support/AffineAlgebra.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

static OperandAccess accessTo(ComputeOp compute, SliceType type, AffineMap map) {
  return {map, type.getShape(), elementBytes(type.getElementType()), compute.getSizes(), compute.getExtents()};
}
OperandAccess tilewright::accessOf(LoadOp load) {
  OperandAccess access = accessTo(load->getParentOfType<ComputeOp>(), load.getSlice().getType(), load.getMap());
  access.guard = load.getGuard().value_or(IntegerSet());
  return access;
}

bool tilewright::liesAlong(LoadOp load, int64_t dim) {
  return accessOf(load).liesAlong(dim);
}

bool tilewright::liesByK(LoadOp load, OperandShape shape) {
  return accessOf(load).liesByK(shape.dim, shape.k);
}

bool tilewright::isWhole(ComputeOp compute, int64_t dim, int64_t count) {
  int64_t size = compute.getSizes()[dim];
  return compute.getExtents()[dim] % size == 0 && size % count == 0;
}

int64_t tilewright::alignedElements(ComputeOp compute, SliceType type, AffineMap map, int64_t dim, int64_t most) {
  return accessTo(compute, type, map).alignedElements(dim, most);
}

int64_t tilewright::alignedRun(ComputeOp compute, SliceType type, AffineMap map, int64_t dim, int64_t most) {
  return accessTo(compute, type, map).alignedRun(dim, most);
}

bool tilewright::beginsInsideWords(ComputeOp compute, LoadOp load, int64_t dim, int64_t k) {
  return load.getSlice().getType().getSpace() == Space::global && !isSwizzled(compute, load) &&
         accessOf(load).beginsInsideWords(dim, k);
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
  if (type.getSpace() != Space::block || shape.dim < 0 || load.getGuard())
    return false;
  int64_t inner = liesByK(load, shape) ? shape.k : shape.dim;
  int64_t atom = kAtomBytes / elementBytes(type.getElementType());
  return hasRoom(compute, load, shape.dim, shape.points) && hasRoom(compute, load, shape.k, kOfSteps(compute, shape)) &&
         alignedElements(compute, type, load.getMap(), inner, atom) == atom;
}

int64_t tilewright::copyGranule(LoadOp load, OperandShape shape) {
  SliceType type = load.getSlice().getType();
  int64_t bytes = type.getSpace() == Space::block ? 0 : shape.copy;
  return std::max<int64_t>(1, bytes / elementBytes(type.getElementType()));
}

bool tilewright::isCopiedAsync(ComputeOp compute, LoadOp load, OperandShape shape) {
  SliceType type = load.getSlice().getType();
  return type.getSpace() != Space::block && !isSwizzled(compute, load) &&
         shape.copy >= kLeastAsyncBytes;
}
