#include "passes/codegen/cpu/Slices.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

MemRefType tilewright::memrefOf(SliceType slice, Attribute space) {
  Type element = slice.getElementType();
  if (element.isInteger(1))
    element = IntegerType::get(slice.getContext(), 8);
  return MemRefType::get(slice.getShape(), element, MemRefLayoutAttrInterface(), space);
}

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

int64_t tilewright::innermostDim(SliceType type, AffineMap map) {
  if (map.getNumResults() == 0 || !type.getStrides().empty())
    return -1;
  AffineExpr index = map.getResults().back();
  for (int64_t dim = 0; dim < map.getNumDims(); ++dim) {
    AffineExpr rest =
        simplifyAffineExpr(index - getAffineDimExpr(dim, map.getContext()), map.getNumDims(), map.getNumSymbols());
    bool alone =
        llvm::none_of(map.getResults().drop_back(), [&](AffineExpr other) { return other.isFunctionOfDim(dim); });
    if (index.isFunctionOfDim(dim) && !rest.isFunctionOfDim(dim))
      return alone ? dim : -1;
  }
  return -1;
}
