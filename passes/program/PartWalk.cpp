// The part of PartBuilder for dims that tiles walk in blocks: initialise the accumulators, loop over blocks, rescale
// earlier sums whenever the maximum has grown (FlashAttention), and correct rows without counted elements at the end.
#include "dialects/tile/TileAttributeNames.h"
#include "passes/program/PartBuilder.h"

#include "passes/graph/CausalBound.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

void PartBuilder::buildWalk(OpBuilder &builder) {
  Location loc = subprogram.getLoc();
  for (ExprOp root : movement.grown)
    walk.block[root] = allocateTile(builder, root.getResult(0));
  if (ExprOp maximum = movement.maximum) {
    walk.reference = allocateTile(builder, maximum.getResult(0));
    walk.factor = allocateTile(builder, maximum.getResult(0));
  }
  for (ExprOp root : movement.grown)
    buildElementwise(builder, rowsOf(root), [&](OpBuilder &body) {
      Value start = arith::ConstantOp::create(body, loc, cast<TypedAttr>(root.getInits()[0]));
      StoreOp::create(body, loc, start, sliceOf(root.getResult(0)), grownIndex(root, rowsOf(root)));
    });
  SyncOp::create(builder, loc, Scope::block);
  auto constant = [&](int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value).getResult(); };
  Value end = constant(extents[movement.walked]);
  if (auto counted = subprogram->getAttrOfType<AffineMapAttr>(kCountedAttr))
    end = arith::MinSIOp::create(builder, loc, endInTile(builder, counted.getValue().getResult(0)), end);
  auto loop = scf::ForOp::create(builder, loc, constant(0), end, constant(tiles[movement.walked]));
  OpBuilder block = OpBuilder::atBlockTerminator(loop.getBody());
  walkOffset = loop.getInductionVar();
  buildNests(block, WalkPhase::inside);
  copyOutBufferedReductions(block, WalkPhase::inside);
  walkOffset = Value();
  if (movement.rescaled.empty())
    return;
  markEmptyRows(builder);
  for (ExprOp root : movement.rescaled)
    joinBlock(builder, root, /*last=*/true);
}

/// Returns the largest value of a linear expression over a tile. Tiles at the border count as whole tiles.
Value PartBuilder::endInTile(OpBuilder &builder, AffineExpr linear) {
  Location loc = subprogram.getLoc();
  ArrayRef<int64_t> grid = subprogram.getGrid();
  SmallVector<int64_t> low(extents.size()), high;
  for (auto [dim, tile] : llvm::enumerate(tiles))
    high.push_back((llvm::is_contained(grid, dim) ? tile : extents[dim]) - 1);
  Value end = arith::ConstantIndexOp::create(builder, loc, largestOver(linear, low, high));
  for (auto [offset, dim] : llvm::zip(offsets, grid))
    if (int64_t slope = slopeAlong(linear, dim, extents.size())) {
      Value scale = arith::ConstantIndexOp::create(builder, loc, slope);
      end = arith::AddIOp::create(builder, loc, end, arith::MulIOp::create(builder, loc, offset, scale));
    }
  return end;
}

AffineMap PartBuilder::grownIndex(ExprOp root, const Nest &nest) {
  return toNest(resultIndex(root, 0, buffers.contains(root.getResult(0))), nest);
}

AffineMap PartBuilder::blockIndex(ExprOp root, const Nest &nest) {
  return toNest(resultIndex(root, 0, /*inBuffer=*/true), nest);
}

void PartBuilder::updateRows(OpBuilder &builder, ExprOp root,
                             llvm::function_ref<void(OpBuilder &, const Nest &, Value)> fill) {
  Nest rows = rowsOf(root);
  SyncOp::create(builder, subprogram.getLoc(), Scope::block);
  buildElementwise(builder, rows, [&](OpBuilder &body) {
    fill(body, rows, loadAt(body, sliceOf(root.getResult(0)), grownIndex(root, rows)));
  });
}

void PartBuilder::joinBlock(OpBuilder &builder, ExprOp root, bool last) {
  updateRows(builder, root, [&](OpBuilder &body, const Nest &rows, Value sum) {
    Location loc = subprogram.getLoc();
    if (llvm::is_contained(movement.rescaled, root))
      sum = arith::MulFOp::create(body, loc, sum, loadAt(body, walk.factor, blockIndex(movement.maximum, rows)));
    if (!last)
      sum = arith::AddFOp::create(body, loc, sum, loadAt(body, walk.block[root], blockIndex(root, rows)));
    StoreOp::create(body, loc, sum, sliceOf(root.getResult(0)), grownIndex(root, rows));
  });
}

static Value number(OpBuilder &body, Location loc, float value) {
  return arith::ConstantOp::create(body, loc, body.getF32FloatAttr(value));
}

static Value selectIfEqual(OpBuilder &body, Value a, Value b, float then, Value otherwise) {
  Location loc = a.getLoc();
  Value same = arith::CmpFOp::create(body, loc, arith::CmpFPredicate::OEQ, a, b);
  return arith::SelectOp::create(body, loc, same, number(body, loc, then), otherwise);
}

static Value selectIfEqual(OpBuilder &body, Value a, float b, float then, Value otherwise) {
  return selectIfEqual(body, a, number(body, a.getLoc(), b), then, otherwise);
}

static constexpr float kNothing = -std::numeric_limits<float>::infinity(); ///< maximum of an empty set

void PartBuilder::joinMaximum(OpBuilder &builder) {
  ExprOp root = movement.maximum;
  updateRows(builder, root, [&](OpBuilder &body, const Nest &rows, Value old) {
    Location loc = subprogram.getLoc();
    Value now = arith::MaximumFOp::create(body, loc, old, loadAt(body, walk.block[root], blockIndex(root, rows)));
    Value difference = arith::SubFOp::create(body, loc, old, now);
    Value factor = math::ExpOp::create(body, loc, difference, approximation());
    StoreOp::create(body, loc, now, sliceOf(root.getResult(0)), grownIndex(root, rows));
    StoreOp::create(body, loc, selectIfEqual(body, old, now, 1, factor), walk.factor, blockIndex(root, rows));
    StoreOp::create(body, loc, selectIfEqual(body, now, kNothing, 0, now), walk.reference, blockIndex(root, rows));
  });
}

void PartBuilder::markEmptyRows(OpBuilder &builder) {
  ExprOp root = movement.maximum;
  updateRows(builder, root, [&](OpBuilder &body, const Nest &rows, Value maximum) {
    Location loc = subprogram.getLoc();
    Value factor =
        selectIfEqual(body, maximum, kNothing, std::numeric_limits<float>::quiet_NaN(), number(body, loc, 1));
    StoreOp::create(body, loc, factor, walk.factor, blockIndex(root, rows));
  });
}
