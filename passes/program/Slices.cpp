// Strides are computed symbolically from affine maps, so they hold for every tile.
#include "passes/program/Slices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

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

ComputeOp tilewright::copyNest(MoveOp move) {
  OpBuilder builder(move);
  SliceType type = move.getSource().getType();
  int64_t rank = type.getRank();
  auto *body = new Block();
  OpBuilder inside(move.getContext());
  inside.setInsertionPointToEnd(body);
  SmallVector<AffineExpr> dims;
  for (int64_t dim = 0; dim < rank; ++dim)
    dims.push_back(builder.getAffineDimExpr(dim));
  auto map = AffineMap::get(rank, rank, dims, builder.getContext());
  Value value = LoadOp::create(inside, move.getLoc(), type.getElementType(), move.getSource(), map, IntegerSetAttr());
  if (Type wide = move.getTarget().getType().getElementType(); wide != type.getElementType())
    value = arith::ExtFOp::create(inside, move.getLoc(), wide, value);
  StoreOp::create(inside, move.getLoc(), value, move.getTarget(), map);
  YieldOp::create(inside, move.getLoc(), ValueRange());
  auto compute =
      ComputeOp::create(builder, move.getLoc(), ValueRange(), ValueRange(), type.getShape(), type.getShape(),
                        ArrayRef<int64_t>(), ArrayRef<int64_t>(), rank - 1, builder.getAffineMapArrayAttr({}),
                        builder.getArrayAttr({}), builder.getStrArrayAttr({}), StringAttr(), RunningAttr());
  compute.getBody().push_back(body);
  return compute;
}
