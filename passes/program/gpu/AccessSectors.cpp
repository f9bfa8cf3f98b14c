// Enumerates the addresses of the first warp for every alignment that tiles may have, counts distinct sectors, and
// multiplies the mean by the number of accesses of all warps.
#include "passes/program/gpu/AccessSectors.h"

#include "passes/program/Slices.h"
#include "passes/program/gpu/TileCopy.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
class SectorCounter {
public:
  SectorCounter(ComputeOp compute, BlockShape shape, SliceType type, AffineMap map)
      : compute(compute), mapping(mapNest(compute, shape)), bytes(type.getElementBytes()), map(map) {
    SmallVector<int64_t> strides = denseStrides(type.getShape());
    for (int64_t dim = 0; dim < rank(); ++dim)
      steps.push_back(strideAlong(map, strides, dim));
  }

  double count() {
    double sectors = 0;
    int64_t unit = startUnit(), starts = kSectorBytes / unit;
    for (int64_t start = 0; start < kSectorBytes; start += unit)
      sectors += static_cast<double>(ofWarp(start)) / starts;
    return sectors * accesses();
  }

private:
  int64_t rank() { return compute.getSizes().size(); }
  bool isVector(int64_t dim) { return dim == static_cast<int64_t>(compute.getVector()); }
  int64_t lanes(int64_t dim) { return isVector(dim) ? mapping.lanes : 1; }
  int64_t threadsAlong(int64_t dim) { return int64_t(1) << mapping.bits[dim].count; }
  int64_t turns(int64_t dim) { return llvm::divideCeil(compute.getSizes()[dim], threadsAlong(dim) * lanes(dim)); }

  /// Returns the number of turns along the dim. In the last one, some threads may have no element.
  double filledTurns(int64_t dim) {
    double perTurn = threadsAlong(dim) * lanes(dim);
    return std::max(1.0, compute.getSizes()[dim] / perTurn);
  }

  /// Returns the depth of the dim's loop. Loops run from the outside in: dims that are not reduced, then reduced dims,
  /// and in each group the vector dim last.
  int64_t depth(int64_t dim) { return 2 * (2 * compute.isReduced(dim) + isVector(dim)) * rank() + dim; }

  /// Returns how often a thread makes the access: once per turn of the loops around it, the innermost of which is one
  /// that it depends on.
  double accesses() {
    int64_t deepest = -1;
    for (int64_t dim = 0; dim < rank(); ++dim)
      if (map.isFunctionOfDim(dim))
        deepest = std::max(deepest, depth(dim));
    double count = mapping.threads >> kWarpBits >> llvm::popcount(mapping.idle >> kWarpBits);
    for (int64_t dim = 0; dim < rank(); ++dim)
      if (depth(dim) <= deepest)
        count *= filledTurns(dim);
    return count;
  }

  /// Returns a divisor of the distance, in bytes, from the start of a sector to the first byte of any access.
  int64_t startUnit() {
    int64_t unit = kSectorBytes;
    for (int64_t dim = 0; dim < rank(); ++dim) {
      bool moves = turns(dim) > 1 || mapping.bits[dim].first + mapping.bits[dim].count > kWarpBits ||
                   compute.getSizes()[dim] < compute.getExtents()[dim];
      if (moves)
        unit = std::gcd(unit, steps[dim].value_or(1) * threadStep(dim) * bytes);
    }
    return unit;
  }

  /// Returns the distance, in points, between the starts of the warp's accesses along a dim.
  int64_t threadStep(int64_t dim) {
    int64_t inWarp = 1;
    if (mapping.bits[dim].first < kWarpBits)
      inWarp = int64_t(1) << std::min(mapping.bits[dim].count, kWarpBits - mapping.bits[dim].first);
    int64_t step = inWarp * lanes(dim), size = compute.getSizes()[dim];
    return size < compute.getExtents()[dim] ? std::gcd(step, size) : step;
  }

  /// Returns the number of sectors that the first warp touches, if it starts `start` bytes into a sector.
  int64_t ofWarp(int64_t start) {
    llvm::SmallDenseSet<int64_t> touched;
    for (int64_t thread = 0; thread < std::min<int64_t>(mapping.threads, 1 << kWarpBits); ++thread) {
      int64_t place = start, inside = true;
      for (int64_t dim = 0; dim < rank(); ++dim) {
        int64_t index = mapping.bits[dim].indexOf(thread) * lanes(dim);
        inside &= index < compute.getSizes()[dim];
        // If the distance is not constant, assume that no two elements share a sector.
        place += index * (steps[dim] ? *steps[dim] * bytes : kSectorBytes * index);
      }
      if (!inside || (thread & mapping.idle))
        continue;
      auto vector = static_cast<int64_t>(compute.getVector());
      int64_t width = vector >= 0 && steps[vector] == 1 ? mapping.lanes * bytes : bytes;
      for (int64_t sector = place / kSectorBytes; sector <= (place + width - 1) / kSectorBytes; ++sector)
        touched.insert(sector);
    }
    return touched.size();
  }

  ComputeOp compute;
  NestMapping mapping;
  int64_t bytes;
  AffineMap map;
  SmallVector<std::optional<int64_t>> steps; ///< distance in elements between neighbours along each dim
};
} // namespace

double tilewright::accessSectors(ComputeOp compute, BlockShape shape, SliceType type, AffineMap map) {
  return SectorCounter(compute, shape, type, map).count();
}
