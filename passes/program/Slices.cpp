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
                        builder.getArrayAttr({}), builder.getStrArrayAttr({}), StringAttr(), GemmAttr(), RunningAttr());
  compute.getBody().push_back(body);
  return compute;
}
