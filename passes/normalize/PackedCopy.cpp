#include "passes/normalize/PackedCopy.h"

#include "dialects/tile/TileAttributeNames.h"
#include "passes/graph/ParameterRecipe.h"
#include "passes/graph/SwizzledLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tilewright;

Value tilewright::padBehind(OpBuilder &builder, Location loc, Value source, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(source.getType());
  if (shape == type.getShape())
    return source;
  SmallVector<OpFoldResult> low(type.getRank(), builder.getIndexAttr(0)), high;
  for (auto [size, whole] : llvm::zip_equal(type.getShape(), shape))
    high.push_back(builder.getIndexAttr(whole - size));
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type.getElementType()));
  return tensor::PadOp::create(builder, loc, type.clone(shape), source, low, high, zero);
}

using BodyBuilder = llvm::function_ref<Value(OpBuilder &, Location, Value)>;

static linalg::GenericOp copyWith(OpBuilder &builder, Location loc, Value source, ArrayRef<int64_t> shape,
                                  AffineMap from, BodyBuilder body) {
  unsigned rank = shape.size();
  Type element = cast<RankedTensorType>(source.getType()).getElementType();
  Value init = tensor::EmptyOp::create(builder, loc, shape, element);
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  SmallVector<AffineMap> maps = {from, builder.getMultiDimIdentityMap(rank)};
  return linalg::GenericOp::create(builder, loc, init.getType(), source, init, maps, loops,
                                   [&](OpBuilder &inside, Location at, ValueRange elements) {
                                     linalg::YieldOp::create(inside, at, body(inside, at, elements[0]));
                                   });
}

linalg::GenericOp tilewright::copyElements(OpBuilder &builder, Location loc, Value source, ArrayRef<int64_t> shape,
                                           ArrayRef<AffineExpr> from) {
  return copyWith(builder, loc, source, shape, AffineMap::get(shape.size(), 0, from, builder.getContext()),
                  [](OpBuilder &, Location, Value element) { return element; });
}

linalg::GenericOp tilewright::swizzleLines(OpBuilder &builder, Location loc, Value source, int64_t atom) {
  auto type = cast<RankedTensorType>(source.getType());
  int64_t rank = type.getRank(), atoms = type.getShape().back() / atom;
  auto swizzled = copyWith(builder, loc, source, type.getShape(), builder.getMultiDimIdentityMap(rank),
                           [&](OpBuilder &inside, Location at, Value) -> Value {
                             auto constant = [&](int64_t value) {
                               return arith::ConstantIndexOp::create(inside, at, value).getResult();
                             };
                             SmallVector<Value> index;
                             for (int64_t dim = 0; dim < rank; ++dim)
                               index.push_back(linalg::IndexOp::create(inside, at, dim));
                             Value turn = arith::MulIOp::create(inside, at, index[rank - 2], constant(atoms));
                             turn = arith::DivUIOp::create(inside, at, turn, constant(kSwizzleLines));
                             turn = arith::RemUIOp::create(inside, at, turn, constant(atoms));
                             turn = arith::MulIOp::create(inside, at, turn, constant(atom));
                             index.back() = arith::XOrIOp::create(inside, at, index.back(), turn);
                             return tensor::ExtractOp::create(inside, at, source, index);
                           });
  swizzled->setAttr(kSwizzleAttr, builder.getI64IntegerAttr(atom));
  return swizzled;
}
