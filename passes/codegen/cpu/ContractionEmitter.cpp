#include "passes/codegen/cpu/ContractionEmitter.h"

#include "passes/target/MicroKernel.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
/// What a tile.compute has to be: acc += row operand * lane operand.
struct Contraction {
  LoadOp rows, lanes;     ///< the operand that is one number for all lanes, and the one that lies along them
  int64_t row = -1, lane; ///< the dims that the register block spans; no row: a vector times a matrix
  SmallVector<int64_t> batch, reduced;
};

/// The load behind a value that is at most widened after it.
LoadOp loadOf(Value value) {
  if (auto widened = value.getDefiningOp<arith::ExtFOp>())
    value = widened.getIn();
  return value.getDefiningOp<LoadOp>();
}

std::optional<Contraction> matchContraction(ComputeOp compute) {
  Block &body = compute.getBodyBlock();
  int64_t lane = compute.getVector();
  if (compute.getAccs().size() != 1 || lane < 0 || compute.isReduced(lane) || compute.getReductions().empty())
    return std::nullopt;
  auto sum = cast<YieldOp>(body.getTerminator()).getValues()[0].getDefiningOp<arith::AddFOp>();
  if (!sum)
    return std::nullopt;
  Value accumulator = body.getArgument(0);
  Value other = sum.getLhs() == accumulator ? sum.getRhs() : sum.getLhs();
  auto product = other.getDefiningOp<arith::MulFOp>();
  bool accumulates = sum.getLhs() == accumulator || sum.getRhs() == accumulator;
  if (!accumulates || !product || !product->hasOneUse() || !sum->hasOneUse())
    return std::nullopt;
  LoadOp left = loadOf(product.getLhs()), right = loadOf(product.getRhs());
  // Nothing else may happen in the body: stores, further results, guards.
  auto known = [&](Operation &op) {
    return &op == product || &op == sum || &op == left || &op == right ||
           (isa<arith::ExtFOp>(op) && llvm::is_contained(product->getOperands(), op.getResult(0)));
  };
  if (!left || !right || left == right || left.getGuard() || right.getGuard() ||
      !llvm::all_of(body.without_terminator(), known))
    return std::nullopt;
  bool leftAlong = left.getMap().isFunctionOfDim(lane), rightAlong = right.getMap().isFunctionOfDim(lane);
  if (leftAlong == rightAlong)
    return std::nullopt;
  Contraction found{leftAlong ? right : left, leftAlong ? left : right, -1, lane, {}, {}};
  for (int64_t dim = 0; dim < static_cast<int64_t>(compute.getSizes().size()); ++dim) {
    bool rows = found.rows.getMap().isFunctionOfDim(dim), lanes = found.lanes.getMap().isFunctionOfDim(dim);
    if (compute.isReduced(dim))
      found.reduced.push_back(dim);
    else if (dim != lane && rows && !lanes &&
             (found.row < 0 || compute.getSizes()[dim] >= compute.getSizes()[found.row]))
      found.row = dim;
  }
  for (int64_t dim = 0; dim < static_cast<int64_t>(compute.getSizes().size()); ++dim)
    if (!compute.isReduced(dim) && dim != lane && dim != found.row)
      found.batch.push_back(dim);
  return found;
}

class ContractionEmitter {
public:
  ContractionEmitter(OpBuilder &builder, ComputeOp compute, const Contraction &contraction, const IRMapping &values,
                     VectorShape shape)
      : builder(builder), compute(compute), contraction(contraction), outer(values), loc(compute.getLoc()),
        element(compute.getBodyBlock().getArgument(0).getType()),
        lanes(shape.bytes * 8 / element.getIntOrFloatBitWidth()), block(registerBlock(shape.registers)),
        indices(compute.getExtents().size()), offsets(indices) {
    // An index along the lanes counts panels where tiles are whole ones, so that packed layouts simplify.
    panel = std::max(width(), packedWidth());
    int64_t size = compute.getSizes()[contraction.lane];
    aligned = size % panel == 0 || size == compute.getExtents()[contraction.lane];
  }

  bool canEmit() {
    return liesAlongLanes(contraction.lanes.getSlice().getType(), contraction.lanes.getMap()) &&
           liesAlongLanes(accumulatorType(), accumulatorMap());
  }

  void emit() {
    Value zero = constantIndex(0);
    for (Value &offset : offsets)
      offset = zero;
    for (auto [dim, offset] : llvm::zip(compute.getOffsetDims(), compute.getOffsets()))
      offsets[dim] = outer.lookup(offset);
    emitBatch(contraction.batch);
  }

private:
  int64_t width() const { return lanes * block.vectors; }

  /// The block of lanes that the operand was packed in, for the widest variant; 1: it was not packed.
  int64_t packedWidth() {
    AffineMap map = contraction.lanes.getMap();
    AffineExpr index = map.getResult(map.getNumResults() - 1);
    auto cut = dyn_cast<AffineBinaryOpExpr>(index);
    if (!cut || index.getKind() != AffineExprKind::Mod)
      return 1;
    int64_t size = cast<AffineConstantExpr>(cut.getRHS()).getValue();
    return size % width() == 0 ? size : 1;
  }
  SliceType accumulatorType() { return cast<SliceType>(compute.getAccs()[0].getType()); }
  AffineMap accumulatorMap() { return cast<AffineMapAttr>(compute.getAccMaps()[0]).getValue(); }

  // --- loops -------------------------------------------------------------------------------------------------------

  void emitBatch(ArrayRef<int64_t> dims) {
    if (dims.empty())
      return emitLaneBlocks();
    forBlocks(dims.front(), 1, [&](Value start, int64_t) {
      indices[dims.front()] = start;
      emitBatch(dims.drop_front());
    });
  }

  /// Lane blocks outside, row blocks inside: the lane operand's panel stays in the cache.
  void emitLaneBlocks() {
    forBlocks(contraction.lane, panel, [&](Value start, int64_t count) {
      indices[contraction.lane] =
          aligned ? arith::DivUIOp::create(builder, loc, start, constantIndex(panel)).getResult() : start;
      for (firstLane = 0; firstLane < count; firstLane += width())
        emitRowBlocks(std::min(width(), count - firstLane));
    });
  }

  void emitRowBlocks(int64_t count) {
    if (contraction.row < 0)
      return emitKernel(1, count);
    forBlocks(contraction.row, block.rows, [&](Value row, int64_t rows) {
      indices[contraction.row] = row;
      emitKernel(rows, count);
    });
  }

  /// Calls `body` for whole blocks of `step` in a loop, and for the rest. The last tile of a grid is shorter: then the
  /// rest is one of two lengths, and which is known at run time.
  void forBlocks(int64_t dim, int64_t step, llvm::function_ref<void(Value start, int64_t count)> body) {
    int64_t size = compute.getSizes()[dim], last = compute.getExtents()[dim] % size;
    Value low = offsets[dim];
    if (last == 0) {
      int64_t whole = size / step * step;
      if (whole == step)
        body(low, step);
      else if (whole > 0)
        loop(low, add(low, constantIndex(whole)), step, [&](Value start) { body(start, step); });
      if (whole < size)
        body(add(low, constantIndex(whole)), size - whole);
      return;
    }
    Value end =
        arith::MinUIOp::create(builder, loc, add(low, constantIndex(size)), constantIndex(compute.getExtents()[dim]));
    Value length = arith::SubIOp::create(builder, loc, end, low);
    Value rest = arith::RemUIOp::create(builder, loc, length, constantIndex(step));
    Value restStart = arith::SubIOp::create(builder, loc, end, rest);
    loop(low, restStart, step, [&](Value start) { body(start, step); });
    llvm::SmallSetVector<int64_t, 2> lengths;
    lengths.insert(size % step);
    lengths.insert(last % step);
    for (int64_t count : lengths) {
      if (count == 0)
        continue;
      Value isIt = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, rest, constantIndex(count));
      auto branch = scf::IfOp::create(builder, loc, isIt, /*withElseRegion=*/false);
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPoint(branch.thenBlock()->getTerminator());
      body(restStart, count);
    }
  }

  void loop(Value low, Value high, int64_t step, llvm::function_ref<void(Value)> body) {
    auto loop = scf::ForOp::create(builder, loc, low, high, constantIndex(step));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(loop.getBody()->getTerminator());
    body(loop.getInductionVar());
  }

  // --- the micro kernel --------------------------------------------------------------------------------------------

  /// One register block: `rows` rows by `count` elements along the lanes.
  void emitKernel(int64_t rows, int64_t count) {
    int64_t vectors = llvm::divideCeil(count, lanes);
    SmallVector<Value> sums = start(rows, count);
    sums = reduce(contraction.reduced, sums, rows, count);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t vector = 0; vector < vectors; ++vector)
        store(sums[row * vectors + vector], row, vector, count);
  }

  /// What the sums begin with: the init, or what is in the slice.
  SmallVector<Value> start(int64_t rows, int64_t count) {
    int64_t vectors = llvm::divideCeil(count, lanes);
    if (auto init = dyn_cast<TypedAttr>(compute.getInits()[0]); init && !isa<UnitAttr>(compute.getInits()[0]))
      return SmallVector<Value>(rows * vectors, broadcast(constant(init)));
    SmallVector<Value> sums;
    Value memory = outer.lookup(compute.getAccs()[0]);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t vector = 0; vector < vectors; ++vector)
        sums.push_back(load(memory, at(accumulatorMap(), row, vector * lanes), vector, count));
    return sums;
  }

  SmallVector<Value> reduce(ArrayRef<int64_t> dims, ValueRange sums, int64_t rows, int64_t count) {
    if (dims.empty())
      return multiplyAdd(sums, rows, count);
    int64_t dim = dims.front(), size = compute.getSizes()[dim];
    Value high = add(offsets[dim], constantIndex(size));
    if (compute.getExtents()[dim] % size != 0)
      high = arith::MinUIOp::create(builder, loc, high, constantIndex(compute.getExtents()[dim]));
    auto loop = scf::ForOp::create(builder, loc, offsets[dim], high, constantIndex(1), sums);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    indices[dim] = loop.getInductionVar();
    scf::YieldOp::create(builder, loc, reduce(dims.drop_front(), loop.getRegionIterArgs(), rows, count));
    return SmallVector<Value>(loop.getResults());
  }

  SmallVector<Value> multiplyAdd(ValueRange sums, int64_t rows, int64_t count) {
    int64_t vectors = llvm::divideCeil(count, lanes);
    SmallVector<Value> along, next;
    for (int64_t vector = 0; vector < vectors; ++vector)
      along.push_back(loadLanes(vector, count));
    for (int64_t row = 0; row < rows; ++row) {
      Value factor = broadcast(loadRow(row));
      for (int64_t vector = 0; vector < vectors; ++vector)
        next.push_back(math::FmaOp::create(builder, loc, factor, along[vector], sums[row * vectors + vector]));
    }
    return next;
  }

  Value loadRow(int64_t row) {
    Value memory = outer.lookup(contraction.rows.getSlice());
    return widen(memref::LoadOp::create(builder, loc, memory, at(contraction.rows.getMap(), row, 0)));
  }

  Value loadLanes(int64_t vector, int64_t count) {
    Value memory = outer.lookup(contraction.lanes.getSlice());
    return load(memory, at(contraction.lanes.getMap(), 0, vector * lanes), vector, count);
  }

  Value load(Value memory, ArrayRef<Value> index, int64_t vector, int64_t count) {
    auto type = VectorType::get({lanes}, cast<MemRefType>(memory.getType()).getElementType());
    if (Value mask = maskOf(vector, count)) {
      Value zeros = constant(cast<TypedAttr>(builder.getZeroAttr(type)));
      return widen(vector::MaskedLoadOp::create(builder, loc, type, memory, index, mask, zeros));
    }
    return widen(vector::LoadOp::create(builder, loc, type, memory, index));
  }

  void store(Value value, int64_t row, int64_t vector, int64_t count) {
    Value memory = outer.lookup(compute.getAccs()[0]);
    Type stored = accumulatorType().getElementType();
    if (stored != element)
      value = arith::TruncFOp::create(builder, loc, VectorType::get({lanes}, stored), value);
    SmallVector<Value> index = at(accumulatorMap(), row, vector * lanes);
    if (Value mask = maskOf(vector, count))
      vector::MaskedStoreOp::create(builder, loc, memory, index, mask, value);
    else
      vector::StoreOp::create(builder, loc, value, memory, index);
  }

  /// Null where all lanes of the vector are in use.
  Value maskOf(int64_t vector, int64_t count) {
    int64_t left = count - vector * lanes;
    if (left >= lanes)
      return {};
    return vector::ConstantMaskOp::create(builder, loc, VectorType::get({lanes}, builder.getI1Type()),
                                          ArrayRef<int64_t>{left});
  }

  Value widen(Value value) {
    if (getElementTypeOrSelf(value.getType()) == element)
      return value;
    auto vector = dyn_cast<VectorType>(value.getType());
    return arith::ExtFOp::create(builder, loc, vector ? Type(vector.clone(element)) : element, value);
  }

  // --- indices -----------------------------------------------------------------------------------------------------

  /// An index expression of the register block's element `row`, `lane`.
  AffineExpr inBlock(AffineExpr expr, int64_t row, AffineExpr lane) {
    SmallVector<AffineExpr> dims;
    for (int64_t dim = 0; dim < static_cast<int64_t>(indices.size()); ++dim) {
      AffineExpr place = builder.getAffineDimExpr(dim);
      if (dim == contraction.row)
        place = place + row;
      if (dim == contraction.lane)
        place = (aligned ? place * panel : place) + (lane + firstLane);
      dims.push_back(place);
    }
    return simplifyAffineExpr(expr.replaceDims(dims), indices.size(), indices.size());
  }

  SmallVector<Value> at(AffineMap map, int64_t row, int64_t lane) {
    return llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) {
      return affine::expandAffineExpr(builder, loc, inBlock(expr, row, builder.getAffineConstantExpr(lane)), indices,
                                      offsets);
    });
  }

  /// Whether the elements of each vector of a block lie one after another.
  bool liesAlongLanes(SliceType type, AffineMap map) {
    auto linear = [&](int64_t lane) {
      AffineExpr sum = builder.getAffineConstantExpr(0);
      int64_t stride = 1;
      for (auto [expr, size] : llvm::reverse(llvm::zip_equal(map.getResults(), type.getShape()))) {
        sum = sum + inBlock(expr, 0, builder.getAffineConstantExpr(lane)) * stride;
        stride *= size;
      }
      return sum;
    };
    for (int64_t lane = 0; lane < width(); ++lane) {
      AffineExpr step = simplifyAffineExpr(linear(lane) - linear(lane / lanes * lanes), indices.size(), indices.size());
      auto distance = dyn_cast<AffineConstantExpr>(step);
      if (!distance || distance.getValue() != lane % lanes)
        return false;
    }
    return true;
  }

  Value constant(TypedAttr value) { return arith::ConstantOp::create(builder, loc, value); }
  Value constantIndex(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
  Value add(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }
  Value broadcast(Value scalar) {
    return vector::BroadcastOp::create(builder, loc, VectorType::get({lanes}, scalar.getType()), scalar);
  }

  OpBuilder &builder;
  ComputeOp compute;
  Contraction contraction;
  const IRMapping &outer;
  Location loc;
  Type element; ///< of the accumulator
  int64_t lanes;
  RegisterBlock block;
  int64_t panel; ///< lanes that the loop along them advances by: one register block, or several of a packed panel
  int64_t firstLane = 0; ///< of the current register block in its panel
  bool aligned;          ///< the index along the lanes counts panels
  SmallVector<Value> indices, offsets;
};
} // namespace

bool tilewright::emitContraction(OpBuilder &builder, ComputeOp compute, const IRMapping &values, VectorShape shape) {
  std::optional<Contraction> contraction = matchContraction(compute);
  if (!contraction)
    return false;
  ContractionEmitter emitter(builder, compute, *contraction, values, shape);
  if (!emitter.canEmit())
    return false;
  emitter.emit();
  return true;
}
