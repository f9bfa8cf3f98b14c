// Transposes squares of vectors in registers. A square of n rows takes log2(n) rounds, each of which interleaves the
// rows of one half with those of the other. Groups of narrow elements that stay together move as one wider integer.
#include "passes/codegen/cpu/TransposeEmitter.h"

#include "passes/codegen/common/EmitLoops.h"
#include "passes/program/Slices.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/AffineExpr.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
/// A copy that reads elements along one dim of the nest and writes them along another.
struct Transpose {
  LoadOp load;
  StoreOp store;
  int64_t from, to;     ///< dims along which elements are contiguous in the source and in the destination
  int64_t together = 1; ///< neighbours along `from` that are neighbours in the destination, too; they move as one
};

/// Returns the number of elements along a dim that are written side by side as a group, or 1. Only the index of the
/// group and the index within it may depend on the dim.
int64_t writtenTogether(StoreOp store, int64_t dim) {
  AffineMap map = store.getMap();
  int64_t size = store.getSlice().getType().getShape().empty() ? 1 : store.getSlice().getType().getShape().back();
  AffineExpr along = getAffineDimExpr(dim, store.getContext());
  if (size == 1 || map.getResults().back() != along % size)
    return 1;
  auto depends = [&](AffineExpr index) { return index.isFunctionOfDim(dim); };
  return llvm::count_if(map.getResults().drop_back(), depends) == 1 &&
                 llvm::is_contained(map.getResults(), along.floorDiv(size))
             ? size
             : 1;
}

/// Returns the dim along which elements, or groups of `together` elements, are contiguous in the destination.
int64_t writtenAlong(StoreOp store, int64_t together) {
  SliceType type = store.getSlice().getType();
  AffineMap map = store.getMap();
  if (together == 1)
    return innermostDim(type, map);
  auto groups = SliceType::get(type.getContext(), type.getShape().drop_back(), type.getElementType(), type.getSpace());
  return innermostDim(groups, map.dropResult(map.getNumResults() - 1));
}

/// Returns true if the nest covers a whole dim in whole groups of `size`.
bool goesOverWhole(ComputeOp compute, int64_t dim, int64_t size) {
  return compute.getSizes()[dim] == compute.getExtents()[dim] && compute.getExtents()[dim] % size == 0 &&
         !llvm::is_contained(compute.getOffsetDims(), dim);
}

std::optional<Transpose> matchTranspose(ComputeOp compute) {
  Block &body = compute.getBodyBlock();
  if (!compute.getAccs().empty() || !llvm::hasNItems(body, 3))
    return std::nullopt;
  auto load = dyn_cast<LoadOp>(body.front());
  auto store = dyn_cast<StoreOp>(*std::next(body.begin()));
  if (!load || !store || load.getGuard() || store.getStreamed() || store.getValue() != load.getValue())
    return std::nullopt;
  Transpose found{load, store, innermostDim(load.getSlice().getType(), load.getMap()), -1};
  if (found.from < 0)
    return std::nullopt;
  if (int64_t size = writtenTogether(store, found.from); goesOverWhole(compute, found.from, size))
    found.together = size;
  found.to = writtenAlong(store, found.together);
  // For elements of less than 16 bits, a square takes more registers than there are.
  Type element = load.getValue().getType();
  if (found.to < 0 || found.from == found.to || !element.isIntOrFloat() ||
      element.getIntOrFloatBitWidth() * found.together < 16)
    return std::nullopt;
  return found;
}

class TransposeEmitter {
public:
  TransposeEmitter(OpBuilder &builder, ComputeOp compute, const Transpose &what, const IRMapping &values,
                   VectorShape shape)
      : builder(builder), compute(compute), what(what), values(values), loc(compute.getLoc()),
        element(Transpose(what).load.getValue().getType()), moved(movedType()),
        lanes(shape.bytes * 8 / moved.getIntOrFloatBitWidth()), indices(compute.getExtents().size()), offsets(indices) {
  }

  void emit() {
    offsets.assign(offsets.size(), constant(0));
    for (auto [dim, offset] : llvm::zip(compute.getOffsetDims(), compute.getOffsets()))
      offsets[dim] = values.lookup(offset);
    emitDim(0);
  }

private:
  Type movedType() const {
    return what.together == 1 ? element : Type(builder.getIntegerType(what.together * element.getIntOrFloatBitWidth()));
  }
  /// Returns the number of elements along the dim that one lane holds.
  int64_t elementsPerLane(int64_t dim) const { return dim == what.from ? what.together : 1; }

  /// Emits the loops over all other dims, and inside them the loops over squares.
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

  /// The number of rows or columns of a square that exist.
  struct Count {
    int64_t known;  ///< number, or an upper bound if it is computed
    Value computed; ///< number if it is known only at run time; else null
    bool isKnown() const { return !computed; }
  };

  /// Calls `body` for whole vectors along a dim in a loop, and for the rest.
  void forBlocks(int64_t dim, llvm::function_ref<void(Count count)> body) {
    int64_t each = elementsPerLane(dim), step = lanes * each;
    int64_t size = compute.getSizes()[dim], whole = size / step * step;
    if (compute.getExtents()[dim] % size != 0)
      return forBlocksWithin(dim, body);
    if (whole > 0)
      loop(offsets[dim], add(offsets[dim], whole), step, [&](Value at) {
        indices[dim] = at;
        body({lanes, Value()});
      });
    if (whole == size)
      return;
    indices[dim] = add(offsets[dim], whole);
    body({(size - whole) / each, Value()});
  }

  /// Does what forBlocks() does, for a tile that may reach past the end of the dim.
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
    emitIf(builder, loc, some, [&] {
      indices[dim] = whole;
      body({lanes, rest});
    });
  }

  void emitSquare(Count rows, Count columns) {
    Value zero =
        arith::ConstantOp::create(builder, loc, cast<TypedAttr>(builder.getZeroAttr(VectorType::get({lanes}, moved))));
    SmallVector<Value> square;
    for (int64_t row = 0; row < lanes; ++row)
      square.push_back(row < rows.known ? read(row, maskOf(row, rows, columns)) : zero);
    square = transpose(square);
    for (int64_t column = 0; column < columns.known; ++column)
      write(square[column], column, maskOf(column, columns, rows));
  }

  /// Returns the mask of the existing lanes of line `number` (a row or a column), or null if all exist. No lane of a
  /// line that does not exist is on.
  Value maskOf(int64_t number, Count lines, Count filled) {
    auto type = VectorType::get({lanes * what.together}, builder.getI1Type());
    if (lines.isKnown() && filled.isKnown())
      return filled.known == lanes
                 ? Value()
                 : vector::ConstantMaskOp::create(builder, loc, type, ArrayRef<int64_t>{filled.known * what.together})
                       .getResult();
    Value count = filled.isKnown() ? constant(filled.known) : filled.computed;
    if (what.together > 1)
      count = arith::MulIOp::create(builder, loc, count, constant(what.together));
    if (!lines.isKnown()) {
      Value exists = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, constant(number), lines.computed);
      count = arith::SelectOp::create(builder, loc, exists, count, constant(0));
    }
    return vector::CreateMaskOp::create(builder, loc, type, count);
  }

  /// Transposes a square. Each round interleaves the rows of the first half with those of the second. After log2(lanes)
  /// rounds, the rows are columns.
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

  /// Returns the type of a vector in memory, whose elements are not yet grouped.
  VectorType stored() const { return VectorType::get({lanes * what.together}, element); }

  Value read(int64_t row, Value mask) {
    LoadOp load = what.load;
    Value memory = values.lookup(load.getSlice()), value;
    SmallVector<Value> index = at(load.getMap(), what.to, row);
    if (mask)
      value = vector::MaskedLoadOp::create(
          builder, loc, stored(), memory, index, mask,
          arith::ConstantOp::create(builder, loc, cast<TypedAttr>(builder.getZeroAttr(stored()))));
    else
      value = vector::LoadOp::create(builder, loc, stored(), memory, index);
    return what.together == 1 ? value : vector::BitCastOp::create(builder, loc, VectorType::get({lanes}, moved), value);
  }

  void write(Value value, int64_t column, Value mask) {
    StoreOp store = what.store;
    Value memory = values.lookup(store.getSlice());
    SmallVector<Value> index = at(store.getMap(), what.from, column * what.together);
    if (what.together > 1)
      value = vector::BitCastOp::create(builder, loc, stored(), value);
    if (!mask)
      vector::StoreOp::create(builder, loc, value, memory, index);
    else
      vector::MaskedStoreOp::create(builder, loc, memory, index, mask, value);
  }

  /// Returns the index of the square's first element, moved by `steps` along `dim`.
  SmallVector<Value> at(AffineMap map, int64_t dim, int64_t steps) {
    SmallVector<AffineExpr> dims;
    for (int64_t other = 0; other < rank(); ++other)
      dims.push_back(builder.getAffineDimExpr(other) + (other == dim ? steps : 0));
    return llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) {
      return affine::expandAffineExpr(builder, loc, simplifyAffineExpr(expr.replaceDims(dims), rank(), rank()), indices,
                                      offsets);
    });
  }

  void loop(Value low, Value high, int64_t step, llvm::function_ref<void(Value)> body) {
    emitFor(builder, loc, low, high, constant(step), body);
  }

  int64_t rank() const { return indices.size(); }
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
  Value add(Value a, int64_t b) { return arith::AddIOp::create(builder, loc, a, constant(b)); }

  OpBuilder &builder;
  ComputeOp compute;
  Transpose what;
  const IRMapping &values;
  Location loc;
  Type element, moved;
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
