#include "passes/codegen/cpu/TransposeEmitter.h"

#include "passes/codegen/cpu/Slices.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/AffineExpr.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
/// A copy whose elements lie along one dim of the nest where they are read, along another where they are written.
struct Transpose {
  LoadOp load;
  StoreOp store;
  int64_t from, to;
};

std::optional<Transpose> matchTranspose(ComputeOp compute) {
  Block &body = compute.getBodyBlock();
  if (!compute.getAccs().empty() || !llvm::hasNItems(body, 3))
    return std::nullopt;
  auto load = dyn_cast<LoadOp>(body.front());
  auto store = dyn_cast<StoreOp>(*std::next(body.begin()));
  if (!load || !store || load.getGuard() || store.getStreamed() || store.getValue() != load.getValue())
    return std::nullopt;
  // Of narrower ones a square takes more registers than there are.
  if (!load.getValue().getType().isIntOrFloat() || load.getValue().getType().getIntOrFloatBitWidth() < 16)
    return std::nullopt;
  Transpose found{load, store, innermostDim(load.getSlice().getType(), load.getMap()),
                  innermostDim(store.getSlice().getType(), store.getMap())};
  if (found.from < 0 || found.to < 0 || found.from == found.to)
    return std::nullopt;
  return found;
}

class TransposeEmitter {
public:
  TransposeEmitter(OpBuilder &builder, ComputeOp compute, const Transpose &what, const IRMapping &values,
                   VectorShape shape)
      : builder(builder), compute(compute), what(what), values(values), loc(compute.getLoc()),
        element(Transpose(what).load.getValue().getType()), lanes(shape.bytes / elementBytes(element)),
        indices(compute.getExtents().size()), offsets(indices) {}

  void emit() {
    offsets.assign(offsets.size(), constant(0));
    for (auto [dim, offset] : llvm::zip(compute.getOffsetDims(), compute.getOffsets()))
      offsets[dim] = values.lookup(offset);
    emitDim(0);
  }

private:
  /// The loops over all other dims, then over squares.
  void emitDim(int64_t dim) {
    int64_t size = dim < rank() ? compute.getSizes()[dim] : 0, extent = dim < rank() ? compute.getExtents()[dim] : 0;
    if (dim == rank())
      return forBlocks(what.to,
                       [&](Count rows) { forBlocks(what.from, [&](Count columns) { emitSquare(rows, columns); }); });
    if (dim == what.from || dim == what.to)
      return emitDim(dim + 1);
    Value end = add(offsets[dim], size);
    if (extent % size != 0)
      end = arith::MinUIOp::create(builder, loc, end, constant(extent));
    loop(offsets[dim], end, 1, [&](Value at) {
      indices[dim] = at;
      emitDim(dim + 1);
    });
  }

  /// Rows or columns of a square that are there: all lanes, fewer, or as many as turn out.
  struct Count {
    int64_t known;
    Value computed;
    bool isKnown() const { return !computed; }
  };

  /// Whole vectors along a dim in a loop, and the rest.
  void forBlocks(int64_t dim, llvm::function_ref<void(Count count)> body) {
    int64_t size = compute.getSizes()[dim], whole = size / lanes * lanes;
    if (compute.getExtents()[dim] % size != 0)
      return forBlocksWithin(dim, body);
    if (whole > 0)
      loop(offsets[dim], add(offsets[dim], whole), lanes, [&](Value at) {
        indices[dim] = at;
        body({lanes, Value()});
      });
    if (whole == size)
      return;
    indices[dim] = add(offsets[dim], whole);
    body({size - whole, Value()});
  }

  /// The same in a tile that may reach past the end of the dim.
  void forBlocksWithin(int64_t dim, llvm::function_ref<void(Count count)> body) {
    Value end = arith::MinUIOp::create(builder, loc, add(offsets[dim], compute.getSizes()[dim]),
                                       constant(compute.getExtents()[dim]));
    Value size = arith::SubIOp::create(builder, loc, end, offsets[dim]);
    Value rest = arith::RemUIOp::create(builder, loc, size, constant(lanes));
    Value whole = arith::SubIOp::create(builder, loc, end, rest);
    loop(offsets[dim], whole, lanes, [&](Value at) {
      indices[dim] = at;
      body({lanes, Value()});
    });
    Value some = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, rest, constant(0));
    auto branch = scf::IfOp::create(builder, loc, some);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    indices[dim] = whole;
    body({lanes, rest});
  }

  void emitSquare(Count rows, Count columns) {
    auto type = VectorType::get({lanes}, element);
    Value zero = arith::ConstantOp::create(builder, loc, cast<TypedAttr>(builder.getZeroAttr(type)));
    SmallVector<Value> square;
    for (int64_t row = 0; row < lanes; ++row)
      square.push_back(row < rows.known ? read(type, zero, row, maskOf(row, rows, columns)) : zero);
    square = transpose(square);
    for (int64_t column = 0; column < columns.known; ++column)
      write(square[column], column, maskOf(column, columns, rows));
  }

  /// The lanes of line `number` of `lines` that are there, if it is there itself; null: all.
  Value maskOf(int64_t number, Count lines, Count filled) {
    auto type = VectorType::get({lanes}, builder.getI1Type());
    if (lines.isKnown() && filled.isKnown())
      return filled.known == lanes
                 ? Value()
                 : vector::ConstantMaskOp::create(builder, loc, type, ArrayRef<int64_t>{filled.known}).getResult();
    Value count = filled.isKnown() ? constant(filled.known) : filled.computed;
    if (!lines.isKnown()) {
      Value exists = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, constant(number), lines.computed);
      count = arith::SelectOp::create(builder, loc, exists, count, constant(0));
    }
    return vector::CreateMaskOp::create(builder, loc, type, count);
  }

  /// Each round interleaves the rows of both halves; after as many rounds as a row's number has bits they are columns.
  SmallVector<Value> transpose(SmallVector<Value> rows) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      low.push_back(lane / 2 + (lane % 2) * lanes);
      high.push_back(low.back() + lanes / 2);
    }
    for (int64_t round = 1; round < lanes; round *= 2) {
      SmallVector<Value> next;
      for (int64_t row = 0; row < lanes / 2; ++row)
        for (ArrayRef<int64_t> mask : {ArrayRef(low), ArrayRef(high)})
          next.push_back(vector::ShuffleOp::create(builder, loc, rows[row], rows[row + lanes / 2], mask));
      rows = std::move(next);
    }
    return rows;
  }

  Value read(VectorType type, Value zero, int64_t row, Value mask) {
    LoadOp load = what.load;
    Value memory = values.lookup(load.getSlice());
    SmallVector<Value> index = at(load.getMap(), what.to, row);
    if (!mask)
      return vector::LoadOp::create(builder, loc, type, memory, index);
    return vector::MaskedLoadOp::create(builder, loc, type, memory, index, mask, zero);
  }

  void write(Value value, int64_t column, Value mask) {
    StoreOp store = what.store;
    Value memory = values.lookup(store.getSlice());
    SmallVector<Value> index = at(store.getMap(), what.from, column);
    if (!mask)
      vector::StoreOp::create(builder, loc, value, memory, index);
    else
      vector::MaskedStoreOp::create(builder, loc, memory, index, mask, value);
  }

  /// The index of the square's first element, `steps` further along `dim`.
  SmallVector<Value> at(AffineMap map, int64_t dim, int64_t steps) {
    SmallVector<AffineExpr> dims;
    for (int64_t place = 0; place < rank(); ++place)
      dims.push_back(builder.getAffineDimExpr(place) + (place == dim ? steps : 0));
    return llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) {
      return affine::expandAffineExpr(builder, loc, simplifyAffineExpr(expr.replaceDims(dims), rank(), rank()), indices,
                                      offsets);
    });
  }

  void loop(Value low, Value high, int64_t step, llvm::function_ref<void(Value)> body) {
    auto loop = scf::ForOp::create(builder, loc, low, high, constant(step));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(loop.getBody()->getTerminator());
    body(loop.getInductionVar());
  }

  int64_t rank() const { return indices.size(); }
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
  Value add(Value a, int64_t b) { return arith::AddIOp::create(builder, loc, a, constant(b)); }

  OpBuilder &builder;
  ComputeOp compute;
  Transpose what;
  const IRMapping &values;
  Location loc;
  Type element;
  int64_t lanes;
  SmallVector<Value> indices, offsets;
};
} // namespace

bool tilewright::emitTranspose(OpBuilder &builder, ComputeOp compute, const IRMapping &values, VectorShape shape) {
  std::optional<Transpose> what = matchTranspose(compute);
  if (!what)
    return false;
  TransposeEmitter(builder, compute, *what, values, shape).emit();
  return true;
}
