#include "passes/codegen/cpu/RegisterBlockIndex.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/IR/AffineExpr.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

/// Writes quotients and remainders of K in terms of its runs and of the iteration within a run: most are then the same
/// for all steps of an iteration, or for all iterations of a run.
AffineExpr RegisterBlockIndex::byRuns(AffineExpr expr, AffineExpr run, AffineExpr iteration) {
  llvm::DenseMap<AffineExpr, AffineExpr> known;
  AffineExpr k = builder.getAffineDimExpr(dims.k);
  int64_t steps = together * perRun;
  expr.walk([&](AffineExpr part) {
    auto cut = dyn_cast<AffineBinaryOpExpr>(part);
    auto size = cut && cut.getLHS() == k ? dyn_cast<AffineConstantExpr>(cut.getRHS()) : AffineConstantExpr();
    if (!size || size.getValue() % steps != 0)
      return;
    int64_t runs = size.getValue() / steps;
    if (part.getKind() == AffineExprKind::FloorDiv)
      known[part] = run.floorDiv(runs);
    else if (part.getKind() == AffineExprKind::Mod)
      known[part] = (run % runs * perRun + iteration) * together + inTogether;
  });
  return known.empty() ? expr : expr.replace(known);
}

/// Returns an index expression at a point of the block.
AffineExpr RegisterBlockIndex::inBlock(AffineExpr expr, Point point) {
  SmallVector<AffineExpr> blockIndices;
  int64_t rank = indices.size();
  AffineExpr run = builder.getAffineDimExpr(dims.k), iteration = builder.getAffineDimExpr(rank);
  if (perRun == 1)
    iteration = builder.getAffineConstantExpr(0);
  for (int64_t dim = 0; dim < rank; ++dim) {
    AffineExpr shifted = builder.getAffineDimExpr(dim);
    if (dim == dims.m)
      shifted = shifted + point.m;
    if (dim == dims.n)
      shifted = (aligned ? shifted * panel : shifted) + (point.n + firstN);
    if (dim == dims.k)
      shifted = (run * perRun + iteration) * (dims.depth * together) + (inTogether * dims.depth + point.k);
    blockIndices.push_back(shifted);
  }
  // Dims behind those of the nest stand for the run and the iteration, which are not shifted.
  AffineExpr ownRun = builder.getAffineDimExpr(rank), ownIteration = builder.getAffineDimExpr(rank + 1);
  if (together > 1 && dims.depth == 1)
    expr = byRuns(expr, ownRun, ownIteration);
  blockIndices.append({run, iteration});
  return simplifyAffineExpr(expr.replaceDims(blockIndices), rank + 1, rank);
}

SmallVector<Value> RegisterBlockIndex::at(AffineMap map, int64_t m, int64_t n, int64_t k) {
  SmallVector<Value> places(indices);
  places.push_back(inRun);
  return llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) {
    return affine::expandAffineExpr(builder, loc, inBlock(expr, {m, n, k}), places, offsets);
  });
}

std::optional<int64_t> RegisterBlockIndex::distance(SliceType type, AffineMap map, Point from, Point to) {
  AffineExpr sum = builder.getAffineConstantExpr(0);
  int64_t stride = 1;
  for (auto [index, size] : llvm::reverse(llvm::zip_equal(map.getResults(), type.getShape()))) {
    sum = sum + (inBlock(index, to) - inBlock(index, from)) * stride;
    stride *= size;
  }
  auto constant = dyn_cast<AffineConstantExpr>(simplifyAffineExpr(sum, indices.size() + 1, indices.size()));
  return constant ? std::optional(constant.getValue()) : std::nullopt;
}

std::optional<int64_t> RegisterBlockIndex::distance(SliceType type, AffineMap map, int64_t m,
                                                    std::pair<int64_t, int64_t> n, std::pair<int64_t, int64_t> k) {
  return distance(type, map, {m, n.first, k.first}, {m, n.second, k.second});
}
