// A point of the domain is base(k) + u, where k is the tile's index and u the position in the tile. Substituting that
// in an access and splitting the terms by k and u gives the access's own base and range. Only a division or mod of a
// sum that mixes both has to be bounded.
#include "passes/graph/TileRegion.h"

#include "llvm/ADT/SmallBitVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tilewright {
namespace {

class Splitter {
public:
  Splitter(const TileGrid &grid, const TileRegion &domain) : grid(grid), ranges(grid.index) {
    for (const TileDim &dim : domain)
      ranges.push_back(dim.range);
    used.resize(ranges.size());
  }

  TileDim split(AffineExpr expr) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
      if (dim.getPosition() < grid.index.size())
        return {expr, {0, 0}};
      used.set(dim.getPosition());
      return {constant(0), ranges[dim.getPosition()]};
    }
    if (isa<AffineConstantExpr>(expr))
      return {expr, {0, 0}};
    auto binary = cast<AffineBinaryOpExpr>(expr);
    TileDim lhs = split(binary.getLHS());
    if (expr.getKind() == AffineExprKind::Add) {
      TileDim rhs = split(binary.getRHS());
      return {lhs.base + rhs.base, {lhs.range.low + rhs.range.low, lhs.range.high + rhs.range.high}};
    }
    int64_t n = cast<AffineConstantExpr>(binary.getRHS()).getValue();
    if (expr.getKind() == AffineExprKind::Mul) {
      int64_t a = lhs.range.low * n, b = lhs.range.high * n;
      return {lhs.base * n, {std::min(a, b), std::max(a, b)}};
    }
    // Either the base alone decides the result, or the position alone, or both do.
    if (lhs.range.size() == 1) {
      AffineExpr operand = lhs.base + lhs.range.low;
      return {expr.getKind() == AffineExprKind::Mod ? operand % n : operand.floorDiv(n), {0, 0}};
    }
    if (isa<AffineConstantExpr>(lhs.base)) {
      bounded |= expr.getKind() == AffineExprKind::Mod;
      return {constant(0), boundExpr(expr, ranges)};
    }
    bounded = true;
    if (expr.getKind() == AffineExprKind::Mod)
      return {constant(0), {0, n - 1}};
    return {lhs.base.floorDiv(n),
            {llvm::divideFloorSigned(lhs.range.low, n), llvm::divideFloorSigned(lhs.range.high + n - 1, n)}};
  }

  /// Returns true if every element of `range` is reached: nothing was bounded, and there are enough points to fill it.
  bool fills(Interval range) const {
    int64_t points = 1;
    for (unsigned dim : used.set_bits())
      points *= ranges[dim].size();
    return !bounded && points >= range.size();
  }
  ArrayRef<Interval> variableRanges() const { return ranges; }

private:
  AffineExpr constant(int64_t value) { return getAffineConstantExpr(value, grid.context); }

  const TileGrid &grid;
  SmallVector<Interval> ranges;
  llvm::SmallBitVector used;
  bool bounded = false;
};

/// Returns the distance of two bases, if it is the same for every tile.
std::optional<int64_t> constantDistance(const TileGrid &grid, AffineExpr a, AffineExpr b) {
  auto distance = dyn_cast<AffineConstantExpr>(simplifyInDomain(a - b, grid.index));
  return distance ? std::optional<int64_t>(distance.getValue()) : std::nullopt;
}
} // namespace

TileDim wholeDim(const TileGrid &grid, int64_t extent) {
  return {getAffineConstantExpr(0, grid.context), {0, extent - 1}};
}

TileDim imageOf(const TileGrid &grid, AffineExpr expr, const TileRegion &domain, int64_t extent, bool &exact) {
  Splitter splitter(grid, domain);
  SmallVector<AffineExpr> points;
  for (auto [position, dim] : llvm::enumerate(domain))
    points.push_back(dim.base + getAffineDimExpr(grid.index.size() + position, grid.context));
  TileDim image = splitter.split(simplifyInDomain(expr.replaceDims(points), splitter.variableRanges()));
  image.base = simplifyInDomain(image.base, grid.index);
  exact &= splitter.fills(image.range);
  return image.range.size() >= extent ? wholeDim(grid, extent) : image;
}

TileDim unite(const TileGrid &grid, const TileDim &a, const TileDim &b, int64_t extent, bool &exact) {
  std::optional<int64_t> distance = constantDistance(grid, b.base, a.base);
  if (!distance) {
    exact = false;
    return wholeDim(grid, extent);
  }
  Interval moved{b.range.low + *distance, b.range.high + *distance};
  Interval hull{std::min(a.range.low, moved.low), std::max(a.range.high, moved.high)};
  exact &= hull.size() <= a.range.size() + moved.size();
  return hull.size() >= extent ? wholeDim(grid, extent) : TileDim{a.base, hull};
}

bool contains(const TileGrid &grid, const TileRegion &b, const TileRegion &a) {
  return llvm::all_of(llvm::zip_equal(a, b), [&](auto pair) {
    const TileDim &inner = std::get<0>(pair), &outer = std::get<1>(pair);
    std::optional<int64_t> distance = constantDistance(grid, inner.base, outer.base);
    return distance && inner.range.low + *distance >= outer.range.low &&
           inner.range.high + *distance <= outer.range.high;
  });
}

} // namespace tilewright
