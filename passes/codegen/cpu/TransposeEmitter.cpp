#include "passes/codegen/cpu/TransposeEmitter.h"

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

/// The dim that the innermost index of a dense slice advances by one with, if no other index depends on it; or -1.
int64_t innermostDim(SliceType type, AffineMap map) {
  if (map.getNumResults() == 0 || !type.getStrides().empty())
    return -1;
  AffineExpr index = map.getResults().back();
  for (unsigned dim = 0; dim < map.getNumDims(); ++dim) {
    AffineExpr rest =
        simplifyAffineExpr(index - getAffineDimExpr(dim, map.getContext()), map.getNumDims(), map.getNumSymbols());
    bool alone =
        llvm::none_of(map.getResults().drop_back(), [&](AffineExpr other) { return other.isFunctionOfDim(dim); });
    if (index.isFunctionOfDim(dim) && !rest.isFunctionOfDim(dim))
      return alone ? dim : -1;
  }
  return -1;
}

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
  for (int64_t dim : {found.from, found.to})
    if (compute.getExtents()[dim] % compute.getSizes()[dim] != 0)
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
      return forBlocks(
          what.to, [&](int64_t rows) { forBlocks(what.from, [&](int64_t columns) { emitSquare(rows, columns); }); });
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

  /// Whole vectors along a dim in a loop, and the rest.
  void forBlocks(int64_t dim, llvm::function_ref<void(int64_t count)> body) {
    int64_t size = compute.getSizes()[dim], whole = size / lanes * lanes;
    if (whole > 0)
      loop(offsets[dim], add(offsets[dim], whole), lanes, [&](Value at) {
        indices[dim] = at;
        body(lanes);
      });
    if (whole == size)
      return;
    indices[dim] = add(offsets[dim], whole);
    body(size - whole);
  }

  void emitSquare(int64_t rows, int64_t columns) {
    auto type = VectorType::get({lanes}, element);
    Value zero = arith::ConstantOp::create(builder, loc, cast<TypedAttr>(builder.getZeroAttr(type)));
    SmallVector<Value> square;
    for (int64_t row = 0; row < lanes; ++row)
      square.push_back(row < rows ? read(type, zero, row, columns) : zero);
    square = transpose(square);
    for (int64_t column = 0; column < columns; ++column)
      write(square[column], column, rows);
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

  Value read(VectorType type, Value zero, int64_t row, int64_t columns) {
    LoadOp load = what.load;
    Value memory = values.lookup(load.getSlice());
    SmallVector<Value> index = at(load.getMap(), what.to, row);
    if (columns == lanes)
      return vector::LoadOp::create(builder, loc, type, memory, index);
    return vector::MaskedLoadOp::create(builder, loc, type, memory, index, mask(columns), zero);
  }

  void write(Value value, int64_t column, int64_t rows) {
    StoreOp store = what.store;
    Value memory = values.lookup(store.getSlice());
    SmallVector<Value> index = at(store.getMap(), what.from, column);
    if (rows == lanes)
      vector::StoreOp::create(builder, loc, value, memory, index);
    else
      vector::MaskedStoreOp::create(builder, loc, memory, index, mask(rows), value);
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
  Value mask(int64_t count) {
    return vector::ConstantMaskOp::create(builder, loc, VectorType::get({lanes}, builder.getI1Type()),
                                          ArrayRef<int64_t>{count});
  }
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
