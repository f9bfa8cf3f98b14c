// Strides are computed symbolically from affine maps, so they hold for every tile.
#include "passes/support/Strides.h"

#include "mlir/IR/AffineExpr.h"

using namespace mlir;

static std::optional<int64_t> strideOf(AffineExpr expr, unsigned dim) {
  if (!expr.isFunctionOfDim(dim))
    return 0;
  if (isa<AffineDimExpr>(expr))
    return 1;
  auto binary = cast<AffineBinaryOpExpr>(expr);
  std::optional<int64_t> lhs = strideOf(binary.getLHS(), dim), rhs = strideOf(binary.getRHS(), dim);
  if (!lhs || !rhs)
    return std::nullopt;
  if (expr.getKind() == AffineExprKind::Add)
    return *lhs + *rhs;
  if (auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS()); factor && expr.getKind() == AffineExprKind::Mul)
    return *lhs * factor.getValue();
  return std::nullopt;
}

std::optional<int64_t> tilewright::strideAlong(AffineMap map, ArrayRef<int64_t> strides, unsigned dim) {
  int64_t total = 0;
  for (auto [expr, stride] : llvm::zip(map.getResults(), strides)) {
    std::optional<int64_t> step = strideOf(expr, dim);
    if (!step)
      return std::nullopt;
    total += *step * stride;
  }
  return total;
}

SmallVector<int64_t> tilewright::denseStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t dim = static_cast<int64_t>(shape.size()) - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * shape[dim + 1];
  return strides;
}
