#include "passes/codegen/cpu/RegisterBlockIndex.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/IR/AffineExpr.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

/// Returns an index expression at a point of the block.
AffineExpr RegisterBlockIndex::inBlock(AffineExpr expr, Point point) {
  SmallVector<AffineExpr> blockIndices;
  for (int64_t dim = 0; dim < static_cast<int64_t>(indices.size()); ++dim) {
    AffineExpr shifted = builder.getAffineDimExpr(dim);
    if (dim == dims.m)
      shifted = shifted + point.m;
    if (dim == dims.n)
      shifted = (aligned ? shifted * panel : shifted) + (point.n + firstN);
    if (dim == dims.k)
      shifted = shifted * (dims.depth * together) + (inTogether * dims.depth + point.k);
    blockIndices.push_back(shifted);
  }
  return simplifyAffineExpr(expr.replaceDims(blockIndices), indices.size(), indices.size());
}

SmallVector<Value> RegisterBlockIndex::at(AffineMap map, int64_t m, int64_t n, int64_t k) {
  return llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) {
    return affine::expandAffineExpr(builder, loc, inBlock(expr, {m, n, k}), indices, offsets);
  });
}

std::optional<int64_t> RegisterBlockIndex::distance(SliceType type, AffineMap map, Point from, Point to) {
  AffineExpr sum = builder.getAffineConstantExpr(0);
  int64_t stride = 1;
  for (auto [index, size] : llvm::reverse(llvm::zip_equal(map.getResults(), type.getShape()))) {
    sum = sum + (inBlock(index, to) - inBlock(index, from)) * stride;
    stride *= size;
  }
  auto constant = dyn_cast<AffineConstantExpr>(simplifyAffineExpr(sum, indices.size(), indices.size()));
  return constant ? std::optional(constant.getValue()) : std::nullopt;
}

std::optional<int64_t> RegisterBlockIndex::distance(SliceType type, AffineMap map, int64_t m,
                                                    std::pair<int64_t, int64_t> n, std::pair<int64_t, int64_t> k) {
  return distance(type, map, {m, n.first, k.first}, {m, n.second, k.second});
}
