#include "passes/normalize/AccumulatorInit.h"

#include "passes/graph/StartValue.h"
#include "passes/graph/TensorExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tilewright;

Value tilewright::zeros(OpBuilder &builder, Location loc, ArrayRef<int64_t> shape, Type element) {
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(element));
  Value empty = tensor::EmptyOp::create(builder, loc, shape, element);
  return linalg::FillOp::create(builder, loc, zero, empty).getResult(0);
}

linalg::GenericOp tilewright::addStart(OpBuilder &builder, linalg::LinalgOp op, Value sums, AffineMap read) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  AffineMap all = builder.getMultiDimIdentityMap(type.getRank());
  bool adds = !startsFromZero(op);
  SmallVector<Value> inputs{sums};
  SmallVector<AffineMap> maps{read};
  if (adds) {
    auto broadcast = op.getDpsInits()[0].getDefiningOp<linalg::BroadcastOp>(); // a bias keeps its small size
    inputs.push_back(broadcast ? broadcast.getInput() : op.getDpsInits()[0]);
    maps.push_back(broadcast ? broadcast.getIndexingMapsArray()[0] : all);
  }
  maps.push_back(all);
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  auto body = [&](OpBuilder &inside, Location at, ValueRange elements) {
    Value sum = elements[0];
    Type wide = sum.getType(), narrow = type.getElementType();
    if (adds) {
      Value start = elements[1];
      if (wide != narrow)
        start = arith::ExtFOp::create(inside, at, wide, start);
      sum = isa<FloatType>(wide) ? arith::AddFOp::create(inside, at, sum, start).getResult()
                                 : arith::AddIOp::create(inside, at, sum, start).getResult();
    }
    if (wide != narrow)
      sum = arith::TruncFOp::create(inside, at, narrow, sum);
    linalg::YieldOp::create(inside, at, sum);
  };
  Value into = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  return linalg::GenericOp::create(builder, loc, TypeRange(type), inputs, into, maps, loops, body);
}
