#include "passes/normalize/GenericBuilder.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tilewright;

Value GenericBuilder::number(OpBuilder &at, Type type, const APInt &value) const {
  return arith::ConstantOp::create(at, loc, at.getIntegerAttr(type, value));
}

Value GenericBuilder::number(OpBuilder &at, Type type, int64_t value) const {
  return arith::ConstantOp::create(at, loc, at.getIntegerAttr(type, value));
}

Value GenericBuilder::index(OpBuilder &at, int64_t loop) const {
  Value here = linalg::IndexOp::create(at, loc, loop);
  return arith::IndexCastOp::create(at, loc, at.getI32Type(), here);
}

Value GenericBuilder::elementwise(RankedTensorType type, ValueRange inputs, ArrayRef<AffineMap> maps, Body body) {
  SmallVector<AffineMap> all(maps);
  all.push_back(builder.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  auto generic = linalg::GenericOp::create(builder, loc, TypeRange(type), inputs, empty, all, loops,
                                           [&](OpBuilder &at, Location, ValueRange elements) {
                                             linalg::YieldOp::create(at, loc, body(at, elements.drop_back()));
                                           });
  return generic.getResult(0);
}

Value GenericBuilder::elementwise(RankedTensorType type, ValueRange inputs, Body body) {
  SmallVector<AffineMap> maps(inputs.size(), builder.getMultiDimIdentityMap(type.getRank()));
  return elementwise(type, inputs, maps, body);
}

Value GenericBuilder::reduce(RankedTensorType type, ValueRange inputs, ArrayRef<AffineMap> maps, TypedAttr start,
                             Combiner combine, Body body) {
  int64_t rank = type.getRank();
  Value first = arith::ConstantOp::create(builder, loc, start);
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  Value init = linalg::FillOp::create(builder, loc, first, empty).getResult(0);
  SmallVector<AffineMap> all(maps);
  all.push_back(builder.getMultiDimIdentityMap(rank + 1).dropResult(rank));
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  loops.push_back(utils::IteratorType::reduction);
  auto generic = linalg::GenericOp::create(
      builder, loc, TypeRange(type), inputs, init, all, loops, [&](OpBuilder &at, Location, ValueRange elements) {
        Value more = body(at, elements.drop_back());
        linalg::YieldOp::create(at, loc, combine(at, elements.back(), more));
      });
  return generic.getResult(0);
}

Value GenericBuilder::sum(RankedTensorType type, ValueRange inputs, ArrayRef<AffineMap> maps, Body body) {
  auto add = [&](OpBuilder &at, Value total, Value more) -> Value {
    return arith::AddIOp::create(at, loc, total, more);
  };
  return reduce(type, inputs, maps, builder.getIntegerAttr(type.getElementType(), 0), add, body);
}

AffineMap GenericBuilder::alongLast(int64_t rank, int64_t dim) {
  SmallVector<AffineExpr> read;
  for (int64_t each = 0; each < rank; ++each)
    read.push_back(builder.getAffineDimExpr(each == dim ? rank : each));
  return AffineMap::get(rank + 1, 0, read, builder.getContext());
}

SmallVector<ReassociationIndices> tilewright::blockGroups(int64_t rank, int64_t dim) {
  SmallVector<ReassociationIndices> groups;
  for (int64_t each = 0, next = 0; each < rank; ++each) {
    groups.push_back({next++});
    if (each == dim)
      groups.back().push_back(next++);
  }
  return groups;
}
