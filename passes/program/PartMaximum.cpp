// The part of PartBuilder for online softmax (Milakov and Gimelshein, 2018) inside one nest. Exponentials are taken
// relative to the maximum so far, which is stored as the reference of their block of points. When the maximum is final,
// references become factors exp(reference - maximum), and readers multiply by the factor of their block.
#include "passes/program/PartBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

int64_t PartBuilder::blocksOfReferences() { return llvm::divideCeil(tiles[subprogram.getVector()], referenceBlock); }

Value PartBuilder::allocateReferences(OpBuilder &builder, Value maximum) {
  auto root = maximum.getDefiningOp<ExprOp>();
  SmallVector<int64_t> shape = tileShape(root, 0);
  shape.push_back(blocksOfReferences());
  return allocate(builder, root.getLoc(), shape, builder.getF32Type());
}

void PartBuilder::storeReference(OpBuilder &builder, ExprOp root, Value reference, const Nest &nest) {
  Value slice = references.lookup(root.getResult(0));
  if (!slice)
    return;
  SmallVector<AffineExpr> index = resultIndex(root, 0, /*inBuffer=*/true);
  index.push_back(getAffineDimExpr(subprogram.getVector(), context()).floorDiv(referenceBlock));
  StoreOp::create(builder, root.getLoc(), reference, slice, toNest(index, nest));
}

void PartBuilder::buildFactors(OpBuilder &builder, ExprOp root) {
  Location loc = root.getLoc();
  Value slice = references.lookup(root.getResult(0)), maximum = buffers.lookup(root.getResult(0));
  Nest rows = rowsOf(root);
  unsigned rank = rows.dims.size();
  AffineMap row = toNest(resultIndex(root, 0, /*inBuffer=*/true), rows);
  SmallVector<AffineExpr> each(row.getResults());
  each.push_back(getAffineDimExpr(rank, context()));
  auto rowMap = AffineMap::get(rank + 1, rank + 1, row.getResults(), context());
  auto eachMap = AffineMap::get(rank + 1, rank + 1, each, context());

  SyncOp::create(builder, loc, Scope::block);
  auto makeFactor = [&](OpBuilder &body) {
    Value reference = loadAt(body, slice, eachMap), final = loadAt(body, maximum, rowMap);
    Value difference = arith::SubFOp::create(body, loc, reference, final);
    Value factor = math::ExpOp::create(body, loc, difference, approximation());
    Value same = arith::CmpFOp::create(body, loc, arith::CmpFPredicate::OEQ, reference, final);
    Value one = arith::ConstantOp::create(body, loc, body.getF32FloatAttr(1));
    StoreOp::create(body, loc, arith::SelectOp::create(body, loc, same, one, factor), slice, eachMap);
  };
  buildElementwise(builder, rows, makeFactor, blocksOfReferences());
}

Value PartBuilder::corrected(OpBuilder &builder, Value value, const SpaceAccess &access, const Nest &nest) {
  Value maximum = movement.relative.lookup(access.tensor);
  auto root = maximum.getDefiningOp<ExprOp>(), stored = access.tensor.getDefiningOp<ExprOp>();
  auto indexAt = [&](int64_t place) {
    for (auto [written, read] : llvm::zip(stored.getResultMap(0).getResults(), access.map.getResults()))
      if (placeOfIndex(stored, written) == place)
        return llvm::is_contained(subprogram.getGrid(), place) ? read - getAffineSymbolExpr(place, context()) : read;
    return getAffineConstantExpr(0, context());
  };
  SmallVector<AffineExpr> index;
  for (AffineExpr expr : root.getResultMap(0).getResults())
    index.push_back(indexAt(placeOfIndex(root, expr)));
  index.push_back(indexAt(subprogram.getVector()).floorDiv(referenceBlock));
  Location loc = stored.getLoc();
  Value factor = LoadOp::create(builder, loc, builder.getF32Type(), references.lookup(maximum), toNest(index, nest),
                                IntegerSetAttr());
  // `reassoc` lets the factor be combined with another one that all points of a block share.
  return arith::MulFOp::create(builder, loc, value, factor, arith::FastMathFlags::reassoc);
}
