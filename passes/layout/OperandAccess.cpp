// A run is aligned if its length divides the offset of the access and the strides of all other dims. If a tile has to
// contain it completely, its length must also divide the tile size and the extent. Indices may divide a dim into pieces
// (the heads of an attention, the lines and windows of an image); then no run may cross from one piece into the next.
#include "passes/layout/OperandAccess.h"

#include "passes/support/AffineAlgebra.h"
#include "passes/support/Strides.h"
#include "passes/target/AccessBytes.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace tilewright;

bool OperandAccess::liesAlong(int64_t dim) const { return dim >= 0 && strideAlong(map, denseStrides(shape), dim) == 1; }

/// Returns the sectors that the threads of a warp read per element if they read neighbours along the dim.
static double sectorShare(const OperandAccess &access, int64_t dim) {
  int64_t points = std::min(kWarpLanes, access.extents[dim]);
  SmallVector<int64_t> strides = denseStrides(access.shape), point(access.map.getNumInputs(), 0);
  llvm::SmallSetVector<int64_t, kWarpLanes> sectors;
  for (point[dim] = 0; point[dim] < points; ++point[dim]) {
    int64_t offset = 0;
    for (auto [index, stride] : llvm::zip(access.map.compose(point), strides))
      offset += index * stride;
    sectors.insert(llvm::divideFloorSigned(offset * access.elementBytes, kSectorBytes));
  }
  return static_cast<double>(sectors.size()) / static_cast<double>(points);
}

bool OperandAccess::liesByK(int64_t dim, int64_t k) const {
  if (dim < 0 || liesAlong(k))
    return true;
  return !liesAlong(dim) && sectorShare(*this, k) <= sectorShare(*this, dim);
}

namespace {
/// How an index, or an offset in memory, changes from one point of a dim to the next.
struct AlongDim {
  int64_t step;    ///< change from a point to the next one
  int64_t divisor; ///< a divisor of the values at which runs begin; 0 if these are all 0
};

/// Follows quasi-affine indices along one dim.
class IndexAlong {
public:
  /// `run` is the length of runs, which begin at its multiples.
  IndexAlong(ArrayRef<int64_t> extents, int64_t dim, int64_t run) : extents(extents), dim(dim), run(run) {}

  /// Returns nothing if a run may cross from one piece into the next.
  std::optional<AlongDim> follow(AffineExpr expr) const {
    if (auto constant = dyn_cast<AffineConstantExpr>(expr))
      return AlongDim{0, std::abs(constant.getValue())};
    if (auto point = dyn_cast<AffineDimExpr>(expr)) {
      if (point.getPosition() == dim)
        return AlongDim{1, run};
      return AlongDim{0, extents[point.getPosition()] > 1 ? 1 : 0};
    }
    if (isa<AffineSymbolExpr>(expr)) // offset of a tile, at which its runs begin
      return AlongDim{0, 0};
    auto binary = cast<AffineBinaryOpExpr>(expr);
    std::optional<AlongDim> lhs = follow(binary.getLHS());
    if (!lhs)
      return std::nullopt;
    if (expr.getKind() == AffineExprKind::Add) {
      std::optional<AlongDim> rhs = follow(binary.getRHS());
      return rhs ? std::optional(AlongDim{lhs->step + rhs->step, std::gcd(lhs->divisor, rhs->divisor)}) : std::nullopt;
    }
    auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
    if (!factor || factor.getValue() == 0)
      return std::nullopt;
    int64_t size = factor.getValue();
    return expr.getKind() == AffineExprKind::Mul ? AlongDim{lhs->step * size, std::abs(lhs->divisor * size)}
                                                 : cut(*lhs, size, expr.getKind());
  }

private:
  std::optional<AlongDim> cut(AlongDim index, int64_t size, AffineExprKind kind) const {
    bool staysInPiece = index.step == 1 && index.divisor % run == 0 && size % run == 0;
    if (index.step != 0 && !staysInPiece)
      return std::nullopt;
    if (kind == AffineExprKind::Mod)
      return AlongDim{index.step, std::gcd(index.divisor, size)};
    return AlongDim{0, index.divisor % size == 0 ? index.divisor / size : 1};
  }

  ArrayRef<int64_t> extents;
  int64_t dim, run;
};

/// Returns how the offset in memory changes along the dim.
std::optional<AlongDim> offsetAlong(const OperandAccess &access, int64_t dim, int64_t run) {
  AlongDim offset{0, 0};
  for (auto [index, stride] : llvm::zip(access.map.getResults(), denseStrides(access.shape))) {
    std::optional<AlongDim> along = IndexAlong(access.extents, dim, run).follow(index);
    if (!along)
      return std::nullopt;
    offset = {offset.step + along->step * stride, std::gcd(offset.divisor, along->divisor * stride)};
  }
  return offset;
}
} // namespace

bool OperandAccess::isGuardedByRuns(int64_t dim, int64_t run) const {
  auto isConstant = [&](AffineExpr expr) {
    std::optional<AlongDim> along = IndexAlong(extents, dim, run).follow(expr);
    return along && along->step == 0;
  };
  return guard == IntegerSet() || llvm::all_of(guard.getConstraints(), isConstant) || holdsByRuns(guard, dim, run);
}

/// Returns the greatest power of two that is at most `most` and divides all counts.
static int64_t mostWhole(ArrayRef<int64_t> counts, int64_t most) {
  while (llvm::any_of(counts, [&](int64_t count) { return count % most != 0; }))
    most /= 2;
  return most;
}

int64_t OperandAccess::alignedElements(int64_t dim, int64_t most) const {
  for (; most > 1; most /= 2) {
    std::optional<AlongDim> offset = offsetAlong(*this, dim, most);
    if (offset && offset->step == 1 && offset->divisor % most == 0)
      return most;
  }
  return 1;
}

int64_t OperandAccess::alignedRun(int64_t dim, int64_t most) const {
  return mostWhole({sizes[dim], extents[dim]}, alignedElements(dim, most));
}

int64_t OperandAccess::copiedAtOnce(int64_t dim, int64_t k, int64_t points, int64_t step) const {
  bool alongK = liesByK(dim, k);
  int64_t inner = alongK ? k : dim;
  int64_t most = alignedRun(inner, std::min(kAtomBytes / elementBytes, alongK ? step : points));
  while (most > 1 && !isGuardedByRuns(inner, most))
    most /= 2;
  return most * elementBytes >= kLeastAsyncBytes ? most : 1;
}

int64_t OperandAccess::widestCopy(int64_t dim, int64_t k, int64_t points, int64_t step, bool shifts) const {
  if (shifts)
    return liesByK(dim, k) ? kLeastAsyncBytes : kAtomBytes;
  return copiedAtOnce(dim, k, points, step) * elementBytes;
}

std::string OperandAccess::whyNotCopied(int64_t bytes, int64_t dim, int64_t k, int64_t points, int64_t step,
                                        bool shifts) const {
  int64_t most = widestCopy(dim, k, points, step, shifts);
  bool isBetween = !shifts && bytes >= std::max(kLeastAsyncBytes, elementBytes) && bytes < most;
  if (bytes == elementBytes || bytes == most || isBetween)
    return "";
  if (bytes > most)
    return llvm::formatv("a thread copies {0} bytes of it at once at most, not {1}: no more are contiguous and aligned",
                         most, bytes);
  return llvm::formatv("a thread copies an element of {0} bytes at once, or {1}{2} bytes, not {3}", elementBytes,
                       shifts || most == kLeastAsyncBytes ? "" : "4 to ", most, bytes);
}

bool OperandAccess::beginsInsideWords(int64_t dim, int64_t k) const {
  int64_t inner = dimOfLines(map);
  return guard == IntegerSet() && 2 * elementBytes == kLeastAsyncBytes && inner == (liesByK(dim, k) ? k : dim) && inner >= 0 &&
         extents[inner] > 1 && alignedRun(inner, kLeastAsyncBytes / elementBytes) == 1;
}

int64_t tilewright::steppedDim(ArrayRef<OperandAccess> operands, ArrayRef<int64_t> reduced) {
  ArrayRef<int64_t> sizes = operands.front().sizes;
  for (const OperandAccess &operand : operands)
    for (int64_t dim : reduced)
      if (sizes[dim] > 1 && operand.liesAlong(dim))
        return dim;
  return *llvm::max_element(reduced, [&](int64_t a, int64_t b) { return sizes[a] < sizes[b]; });
}
