// A contiguous tile is copied in three parts: single elements up to the first whole sector, vectors, and single
// elements after the last whole sector. A tile of several runs consists of whole sectors and takes vectors only.
#include "passes/codegen/gpu/copy/TileCopyEmitter.h"

#include "dialects/tile/BufferOffsets.h"
#include "passes/codegen/common/EmitLoops.h"
#include "passes/program/Slices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
bool isBlock(Value slice) { return cast<SliceType>(slice.getType()).getSpace() == Space::block; }

class CopyEmitter {
public:
  CopyEmitter(OpBuilder &builder, ComputeOp copy, const IRMapping &values, Value thread, int64_t threads,
              const GpuCosts &costs)
      : builder(builder), copy(copy), loc(copy.getLoc()), values(values), threads(threads), costs(costs),
        load(*copy.getBodyBlock().getOps<LoadOp>().begin()), store(*copy.getBodyBlock().getOps<StoreOp>().begin()) {
    own = arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), thread);
  }

  void emit() {
    int64_t bytes = global().getElementBytes(), perSector = kSectorBytes / bytes;
    lanes = kCopyBytes / bytes;
    source = flat(load.getSlice());
    target = flat(store.getSlice());
    if (!isOneRun(copy.getExtents(), copy.getSizes()))
      return emitRuns();
    findRun();
    Value low = first, high = end;
    bool whole = grain % perSector == 0;
    if (!whole) {
      // Copy vectors from the first whole sector to the last one, if there is any.
      low = arith::MinUIOp::create(builder, loc, down(add(first, perSector - 1), perSector), end);
      high = arith::MaxUIOp::create(builder, loc, down(end, perSector), low);
      emitElements(first, low);
    }
    emitVectors(low, high);
    if (!whole)
      emitElements(high, end);
  }

private:
  SliceType global() { return (isBlock(load.getSlice()) ? store.getSlice() : load.getSlice()).getType(); }
  SliceType buffer() { return (isBlock(load.getSlice()) ? load.getSlice() : store.getSlice()).getType(); }

  Value constant(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
  Value add(Value a, int64_t b) { return arith::AddIOp::create(builder, loc, a, constant(b)); }
  Value mul(Value a, int64_t b) { return arith::MulIOp::create(builder, loc, a, constant(b)); }
  Value less(Value a, Value b) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, a, b).getResult();
  }
  Value divide(Value a, int64_t b) { return arith::DivUIOp::create(builder, loc, a, constant(b)); }
  Value modulo(Value a, int64_t b) { return arith::RemUIOp::create(builder, loc, a, constant(b)); }
  /// Rounds down to a multiple of `unit`, a power of two.
  Value down(Value value, int64_t unit) { return arith::AndIOp::create(builder, loc, value, constant(-unit)); }

  /// Sets the first element and the end of the run, in elements of the tensor, and a divisor of both.
  void findRun() {
    SmallVector<int64_t> strides = denseStrides(copy.getExtents());
    first = constant(0);
    grain = 0;
    for (auto [dim, offset] : llvm::zip(copy.getOffsetDims(), copy.getOffsets())) {
      first = arith::AddIOp::create(builder, loc, first, mul(values.lookup(offset), strides[dim]));
      grain = std::gcd(grain, copy.getSizes()[dim] * strides[dim]);
    }
    most = 1;
    Value count;
    for (auto [size, extent, stride, dim] :
         llvm::zip(copy.getSizes(), copy.getExtents(), strides, llvm::seq<int64_t>(0, strides.size()))) {
      most *= size;
      if (extent % size == 0)
        continue;
      // The last tile along the dim may be shorter.
      const auto *place = llvm::find(copy.getOffsetDims(), dim);
      Value offset = values.lookup(copy.getOffsets()[place - copy.getOffsetDims().begin()]);
      Value left = arith::SubIOp::create(builder, loc, constant(extent), offset);
      count = mul(arith::MinUIOp::create(builder, loc, left, constant(size)), stride);
      grain = std::gcd(grain, extent % size * stride);
    }
    grain = std::gcd(grain, most);
    end = count ? arith::AddIOp::create(builder, loc, first, count) : add(first, most);
  }

  /// Offsets of a vector in the tensor and in the buffer. `inside` tells if the vector exists; null means always.
  struct Place {
    Value tensor, buffer, inside;
  };

  Place placed(Value element, Value high) {
    Value inside = high ? less(element, high) : Value();
    return {element, arith::SubIOp::create(builder, loc, element, first), inside};
  }

  void emitRuns() {
    int64_t vectors = buffer().getNumElements() / lanes, turns = llvm::divideCeil(vectors, threads);
    int64_t together = std::min(turns, costs.vectorsInFlight);
    auto group = [&](Value from) {
      SmallVector<Place> places;
      for (int64_t i = 0; i < together; ++i)
        places.push_back(placeInRuns(i == 0 ? from : add(from, i * threads), vectors % (together * threads) != 0));
      copyVectors(places);
    };
    if (turns <= together)
      return group(own);
    emitFor(builder, loc, own, constant(vectors), constant(together * threads), group);
  }

  /// Returns the place of vector `number` of the buffer. If `partial`, there may be no vector of that number.
  Place placeInRuns(Value number, bool partial) {
    ArrayRef<int64_t> sizes = copy.getSizes(), extents = copy.getExtents();
    SmallVector<int64_t> strides = denseStrides(extents);
    int64_t innermost = static_cast<int64_t>(sizes.size()) - 1;
    Place place{constant(0), mul(number, lanes), Value()};
    auto restrict = [&](Value inside) {
      place.inside = place.inside ? arith::AndIOp::create(builder, loc, place.inside, inside).getResult() : inside;
    };
    if (partial)
      restrict(less(place.buffer, constant(buffer().getNumElements())));
    Value rest = place.buffer;
    for (int64_t dim = innermost; dim >= 0; --dim) {
      Value index = dim == 0 ? rest : modulo(rest, sizes[dim]);
      rest = dim == 0 ? rest : divide(rest, sizes[dim]);
      const auto *moving = llvm::find(copy.getOffsetDims(), dim);
      if (moving != copy.getOffsetDims().end()) {
        Value offset = values.lookup(copy.getOffsets()[moving - copy.getOffsetDims().begin()]);
        index = arith::AddIOp::create(builder, loc, index, offset);
        if (extents[dim] % sizes[dim] != 0)
          restrict(less(index, constant(extents[dim])));
      }
      place.tensor = arith::AddIOp::create(builder, loc, place.tensor, mul(index, strides[dim]));
    }
    return place;
  }

  Value flat(Value slice) {
    Value memory = values.lookup(slice);
    auto type = cast<MemRefType>(memory.getType());
    int64_t elements = type.getNumElements();
    auto run = MemRefType::get({elements}, type.getElementType(), MemRefLayoutAttrInterface(), type.getMemorySpace());
    return memref::ReinterpretCastOp::create(builder, loc, run, memory, /*offset=*/0, ArrayRef<int64_t>{elements},
                                             ArrayRef<int64_t>{1});
  }

  /// Returns the offset of an element of the tensor in the memory of a slice.
  Value placeIn(Value slice, Value element) {
    return isBlock(slice) ? arith::SubIOp::create(builder, loc, element, first).getResult() : element;
  }

  /// Copies the elements from `low` to `high`, which are fewer than there are threads.
  void emitElements(Value low, Value high) {
    Value element = arith::AddIOp::create(builder, loc, low, own);
    emitIf(builder, loc, less(element, high), [&] {
      Value value = memref::LoadOp::create(builder, loc, source, placeIn(load.getSlice(), element));
      memref::StoreOp::create(builder, loc, value, target, placeIn(store.getSlice(), element));
    });
  }

  void emitVectors(Value low, Value high) {
    int64_t vectors = llvm::divideCeil(most, lanes), turns = llvm::divideCeil(vectors, threads);
    int64_t together = std::min(turns, costs.vectorsInFlight), step = threads * lanes;
    Value start = arith::AddIOp::create(builder, loc, low, mul(own, lanes));
    bool exact = grain % (together * step) == 0;
    auto group = [&](Value from) {
      SmallVector<Place> places;
      for (int64_t i = 0; i < together; ++i)
        places.push_back(placed(i == 0 ? from : add(from, i * step), exact ? Value() : high));
      copyVectors(places);
    };
    if (turns <= together)
      return group(start);
    emitFor(builder, loc, start, high, constant(together * step), group);
  }

  VectorType vectorType() { return VectorType::get({lanes}, cast<MemRefType>(source.getType()).getElementType()); }

  void copyVectors(ArrayRef<Place> places) {
    SmallVector<Value> loaded;
    for (const Place &place : places)
      loaded.push_back(loadVector(place));
    for (auto [place, value] : llvm::zip(places, loaded))
      storeVector(value, place);
  }

  static Value placeOf(Value slice, const Place &place) { return isBlock(slice) ? place.buffer : place.tensor; }

  Value loadVector(const Place &place) {
    auto emit = [&] {
      auto vector = vector::LoadOp::create(builder, loc, vectorType(), source, placeOf(load.getSlice(), place));
      vector.setAlignment(kCopyBytes);
      return vector.getResult();
    };
    if (!place.inside)
      return emit();
    auto branch = scf::IfOp::create(builder, loc, vectorType(), place.inside, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.elseBlock());
    Value none = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(vectorType()));
    scf::YieldOp::create(builder, loc, none);
    builder.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(builder, loc, emit());
    return branch.getResult(0);
  }

  void storeVector(Value value, const Place &place) {
    emitIf(builder, loc, place.inside, [&] {
      vector::StoreOp::create(builder, loc, value, target, placeOf(store.getSlice(), place)).setAlignment(kCopyBytes);
    });
  }

  OpBuilder &builder;
  ComputeOp copy;
  Location loc;
  const IRMapping &values;
  int64_t threads, lanes = 1;
  const GpuCosts &costs;
  LoadOp load;
  StoreOp store;
  Value own;                   ///< index of the thread
  Value first, end;            ///< bounds of the run, in elements
  int64_t most = 1, grain = 1; ///< most elements copied, and a divisor of the run's start and length
  Value source, target;
};
} // namespace

void tilewright::emitTileCopy(OpBuilder &builder, ComputeOp copy, const IRMapping &values, Value thread,
                              int64_t threads, const GpuCosts &costs) {
  CopyEmitter(builder, copy, values, thread, threads, costs).emit();
}
