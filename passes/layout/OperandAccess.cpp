// A run is aligned if its length divides the offset of the access and the strides of all other dims. If a tile has to
// contain it completely, its length must also divide the tile size and the extent.
#include "passes/layout/OperandAccess.h"

#include "passes/support/AffineAlgebra.h"
#include "passes/support/Strides.h"
#include "passes/target/AccessBytes.h"

#include <numeric>

using namespace mlir;
using namespace tilewright;

bool OperandAccess::liesAlong(int64_t dim) const { return dim >= 0 && strideAlong(map, denseStrides(shape), dim) == 1; }

bool OperandAccess::liesByK(int64_t dim, int64_t k) const { return dim < 0 || liesAlong(k) || !liesAlong(dim); }

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

int64_t OperandAccess::alignedElements(int64_t dim, int64_t most) const {
  SmallVector<int64_t> strides = denseStrides(shape), origin(map.getNumInputs(), 0);
  std::optional<SmallVector<int64_t>> pieces = piecesAlong(map, strides, dim);
  if (!pieces)
    return 1;
  SmallVector<int64_t> wholes = *pieces;
  for (auto [index, stride] : llvm::zip(map.compose(origin), strides))
    wholes.push_back(index * stride);
  for (int64_t other = 0; other < static_cast<int64_t>(sizes.size()); ++other)
    if (other != dim && extents[other] > 1)
      wholes.push_back(stepAlong(map, strides, other));
  return mostWhole(wholes, most);
}

int64_t OperandAccess::alignedRun(int64_t dim, int64_t most) const {
  return mostWhole({sizes[dim], extents[dim]}, alignedElements(dim, most));
}

int64_t OperandAccess::copiedAtOnce(int64_t dim, int64_t k, int64_t points, int64_t step) const {
  bool alongK = liesByK(dim, k);
  int64_t most = alignedRun(alongK ? k : dim, std::min(kAtomBytes / elementBytes, alongK ? step : points));
  return most * elementBytes >= kLeastAsyncBytes ? most : 1;
}

bool OperandAccess::beginsInsideWords(int64_t dim, int64_t k) const {
  int64_t inner = dimOfLines(map);
  return 2 * elementBytes == kLeastAsyncBytes && inner == (liesByK(dim, k) ? k : dim) && inner >= 0 &&
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
