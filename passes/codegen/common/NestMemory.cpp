// Selects how a nest accesses memory. A contiguous access is a vector load or store, a uniform one a scalar access, one
// with a small stride several vector loads with shuffles, and any other a gather or scatter. Prefetches fetch
// the next tile's loads and the next nest's stores.
#include "passes/codegen/common/NestMemory.h"

#include "passes/program/Slices.h"
#include "passes/support/OverlapsAlong.h"
#include "passes/target/AccessBytes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

/// Bytes of a page. The microcode handles a masked load from a page that is not mapped, although all of its lanes are
/// off: on an AMD EPYC, loads of a line above an image took 0.28 us each.
static constexpr int64_t kPageBytes = 4096;

/// Returns true if the index is constant within blocks along the dim whose size is a multiple of `points`.
static bool isBlockwise(AffineExpr index, unsigned dim, int64_t points) {
  if (!index.isFunctionOfDim(dim))
    return true;
  if (index.getKind() != AffineExprKind::FloorDiv)
    return false;
  auto division = cast<AffineBinaryOpExpr>(index);
  auto block = dyn_cast<AffineConstantExpr>(division.getRHS());
  return block && block.getValue() % points == 0 && division.getLHS() == getAffineDimExpr(dim, index.getContext());
}

NestMemory::Lanes NestMemory::lanesOf(SliceType type, AffineMap map) {
  if (vectorDim < 0)
    return Lanes::uniform;
  // A dim that every tile spans as a whole starts at zero, so its vectors start at multiples of their lanes.
  bool whole = !llvm::is_contained(compute.getOffsetDims(), vectorDim);
  if (whole && !threads &&
      llvm::all_of(map.getResults(), [&](AffineExpr index) { return isBlockwise(index, vectorDim, wholeLanes); }))
    return Lanes::uniform;
  std::optional<int64_t> stride = strideAlong(map, denseStrides(type.getShape()), vectorDim);
  if (stride && *stride == 0 && !map.isFunctionOfDim(vectorDim))
    return Lanes::uniform;
  return stride && *stride == 1 ? Lanes::contiguous : Lanes::scattered;
}

std::optional<int64_t> NestMemory::loadedPerLane(LoadOp load) {
  SliceType type = load.getSlice().getType();
  return lanesOf(type, load.getMap()) == Lanes::scattered ? strideInLine(load) : 1;
}

SmallVector<Value> NestMemory::scalarIndices(AffineMap map) {
  return llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) { return scalarIndex(expr); });
}

Value NestMemory::emitLoad(LoadOp load, Value mask) {
  SliceType type = load.getSlice().getType();
  Value memory = outer.lookup(load.getSlice());
  Type element = cast<MemRefType>(memory.getType()).getElementType();
  Value guard, laneGuard;
  if (std::optional<IntegerSet> set = load.getGuard(); set && !guardsHold) {
    bool onLanes = llvm::any_of(set->getConstraints(), [&](AffineExpr expr) { return differsByLane(*set, expr); });
    (onLanes ? laneGuard : guard) = emitWithin(*set, onLanes);
  }
  Lanes kind = lanesOf(type, load.getMap());
  Value value;
  if (kind == Lanes::uniform && !laneGuard) {
    value = loadScalar(memory, element, load.getMap(), guard);
  } else {
    Value lanesRead = mask;
    auto restrict = [&](Value condition) {
      if (condition)
        lanesRead =
            lanesRead ? arith::AndIOp::create(builder, loc, lanesRead, toVector(condition)) : toVector(condition);
    };
    auto neighbours = [&] { return loadContiguous(memory, element, indicesOf(load, kPageBytes), lanesRead); };
    if (threads && guard && !laneGuard && kind == Lanes::contiguous)
      return fromStorage(loadWhere(guard, VectorType::get({lanes}, element), neighbours), load.getValue().getType());
    restrict(guard);
    restrict(laneGuard);
    if (kind == Lanes::contiguous)
      prefetchNextTile(load, memory, element);
    std::optional<Value> strided;
    if (kind == Lanes::scattered && !threads)
      strided = lanesRead || isInside(load) ? loadStridedWhere(lanesRead, memory, element, load)
                          : loadStrided(memory, element, type, load.getMap());
    value = strided                     ? *strided
            : kind == Lanes::contiguous ? neighbours()
                                        : gather(memory, type, linearIndex(type, load.getMap()), lanesRead);
  }
  return fromStorage(value, load.getValue().getType());
}

SmallVector<Value> NestMemory::indicesOf(LoadOp load, int64_t outside) {
  SmallVector<Value> at = scalarIndices(load.getMap());
  SliceType type = load.getSlice().getType();
  if (threads || !load.getGuard() || isInside(load) || (outside > 1 && type.getSpace() != Space::global))
    return at;
  int64_t bytes = elementBytes(type.getElementType());
  for (auto [index, expr, extent, stride] :
       llvm::zip(at, load.getMap().getResults(), type.getShape(), denseStrides(type.getShape()))) {
    std::optional<Interval> reached = rangeOf(expr);
    if (reached && std::max(-reached->low, reached->high - (extent - 1)) * stride * bytes < outside)
      continue;
    Value low = arith::MaxSIOp::create(builder, loc, index, constantIndex(0));
    index = arith::MinSIOp::create(builder, loc, low, constantIndex(extent - 1));
  }
  return at;
}

Value NestMemory::loadScalar(Value memory, Type element, AffineMap map, Value guard) {
  SmallVector<Value> at = scalarIndices(map);
  auto read = [&] { return memref::LoadOp::create(builder, loc, memory, at).getResult(); };
  if (!guard)
    return read();
  if (threads)
    return loadWhere(guard, element, read);
  // If the guard fails, read the first element instead. It always exists, and reading it is cheaper than a branch.
  for (Value &index : at)
    index = arith::SelectOp::create(builder, loc, guard, index, constantIndex(0));
  Value value = memref::LoadOp::create(builder, loc, memory, at);
  return arith::SelectOp::create(builder, loc, guard, value, constant(cast<TypedAttr>(builder.getZeroAttr(element))));
}

Value NestMemory::loadWhere(Value guard, Type type, llvm::function_ref<Value()> read) {
  auto branch = scf::IfOp::create(builder, loc, type, guard, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard back(builder);
  builder.setInsertionPointToEnd(branch.thenBlock());
  scf::YieldOp::create(builder, loc, read());
  builder.setInsertionPointToEnd(branch.elseBlock());
  Value zero =
      isa<VectorType>(type) ? zeros(cast<VectorType>(type)) : constant(cast<TypedAttr>(builder.getZeroAttr(type)));
  scf::YieldOp::create(builder, loc, zero);
  return branch.getResult(0);
}

bool NestMemory::readsWindows(AffineMap map) {
  ArrayRef<int64_t> extents = compute.getExtents();
  return llvm::any_of(llvm::seq<int64_t>(0, indices.size()), [&](int64_t dim) {
    return !compute.isReduced(dim) && extents[dim] > 1 && overlapsAlong(map, dim, compute.getReductions(), extents);
  });
}

void NestMemory::prefetchNextTile(LoadOp load, Value memory, Type element) {
  int64_t dim = load.getSlice().getType().getSpace() == Space::global ? fastestWalkedDim(load.getMap()) : -1;
  int64_t bytes = tileBytes(load.getMap(), element);
  // A tile that fills a cache is evicted before it is read.
  if (dim < 0 || threads || !leavesMemoryIdle || readsWindows(load.getMap()) || bytes > shape.outerBytes / 2)
    return;
  Value here = indices[dim];
  indices[dim] = add(here, compute.getSizes()[dim]);
  SmallVector<Value> at = scalarIndices(load.getMap());
  indices[dim] = here;
  unsigned locality = bytes <= shape.cacheBytes / 4 ? 3 : 2;
  prefetchLanes(memory, element, at, /*forWrite=*/false, locality);
}

void NestMemory::prefetchNextOutputs() {
  for (StoreOp storeOp : nextOutputs) {
    Value memory = outer.lookup(storeOp.getSlice());
    Type element = cast<MemRefType>(memory.getType()).getElementType();
    prefetchLanes(memory, element, scalarIndices(storeOp.getMap()), /*forWrite=*/true, /*locality=*/3);
  }
}

void NestMemory::prefetchLanes(Value memory, Type element, ArrayRef<Value> first, bool forWrite, unsigned locality) {
  int64_t perLine = kCpuLineBytes / elementBytes(element);
  for (int64_t lane = 0; lane < lanes; lane += perLine) {
    SmallVector<Value> line(first);
    line.back() = add(line.back(), lane);
    memref::PrefetchOp::create(builder, loc, memory, line, forWrite, locality, /*isDataCache=*/true);
  }
}

int64_t NestMemory::fastestWalkedDim(AffineMap map) {
  auto walk = compute->getParentOfType<WalkOp>();
  if (!walk || llvm::hasSingleElement(walk.getBody().getOps<ComputeOp>()))
    return -1;
  int64_t dim = -1, fastest = -1;
  for (auto [offsetDim, offset] : llvm::zip(compute.getOffsetDims(), compute.getOffsets()))
    if (int64_t number = cast<BlockArgument>(offset).getArgNumber();
        number > fastest && map.isFunctionOfDim(offsetDim)) {
      dim = offsetDim;
      fastest = number;
    }
  return dim;
}

int64_t NestMemory::tileBytes(AffineMap map, Type element) {
  int64_t bytes = elementBytes(element);
  for (int64_t dim = 0; dim < static_cast<int64_t>(indices.size()); ++dim)
    bytes *= map.isFunctionOfDim(dim) ? compute.getSizes()[dim] : 1;
  return bytes;
}

Value NestMemory::loadContiguous(Value memory, Type element, ValueRange at, Value lanesRead) {
  auto type = VectorType::get({lanes}, element);
  if (!lanesRead) {
    auto whole = vector::LoadOp::create(builder, loc, type, memory, at);
    if (threads)
      whole.setAlignment(vectorBytes(element));
    return whole;
  }
  return vector::MaskedLoadOp::create(builder, loc, type, memory, at, lanesRead, zeros(type));
}

std::optional<int64_t> NestMemory::smallStride(Type element, SliceType type, AffineMap map) {
  std::optional<int64_t> stride = strideAlong(map, denseStrides(type.getShape()), vectorDim);
  bool isSmall = stride && *stride >= 2 && *stride <= shape.stridedLanes;
  return isSmall && lanes % chunkOf(element) == 0 ? stride : std::nullopt;
}

std::optional<int64_t> NestMemory::strideInLine(LoadOp load) {
  SliceType type = load.getSlice().getType();
  ArrayRef<AffineExpr> results = load.getMap().getResults();
  if (!results.back().isFunctionOfDim(vectorDim) ||
      llvm::any_of(results.drop_back(), [&](AffineExpr index) { return index.isFunctionOfDim(vectorDim); }))
    return std::nullopt;
  return smallStride(type.getElementType(), type, load.getMap());
}

int64_t NestMemory::chunkOf(Type element) { return std::min(lanes, shape.bytes / elementBytes(element)); }

std::optional<Value> NestMemory::loadStrided(Value memory, Type element, SliceType type, AffineMap map) {
  std::optional<int64_t> stride = smallStride(element, type, map);
  if (!stride)
    return std::nullopt;
  SmallVector<int64_t> strides = denseStrides(type.getShape()), origin(map.getNumInputs(), 0);
  int64_t start = 0, last = 0;
  for (auto [index, distance] : llvm::zip(map.compose(origin), strides))
    start += index * distance;
  last = start;
  for (int64_t dim = 0; dim < static_cast<int64_t>(indices.size()); ++dim) {
    std::optional<int64_t> along = strideAlong(map, strides, dim);
    if (!along || *along < 0)
      return std::nullopt;
    last += *along * (compute.getExtents()[dim] - 1);
  }
  // Loads start at a multiple of the stride, so that they never begin before the slice. They must not reach past its
  // end either.
  int64_t before = start % *stride;
  if (start < 0 || last - before + *stride > type.getNumElements())
    return std::nullopt;
  SmallVector<Value> at = scalarIndices(map);
  auto part = VectorType::get({chunkOf(element)}, element);
  return everyNth(element, *stride, before, [&](int64_t lane, int64_t number) -> Value {
    SmallVector<Value> here(at);
    here.back() = add(here.back(), lane * *stride + number * part.getNumElements() - before);
    return vector::LoadOp::create(builder, loc, part, memory, here);
  });
}

std::optional<Value> NestMemory::loadStridedWhere(Value lanesRead, Value memory, Type element, LoadOp load) {
  SliceType type = load.getSlice().getType();
  std::optional<int64_t> stride = strideInLine(load);
  if (!stride)
    return std::nullopt;
  SmallVector<Value> at = indicesOf(load, /*outside=*/1);
  at.back() = scalarIndex(load.getMap().getResults().back());
  int64_t chunk = chunkOf(element);
  auto part = VectorType::get({chunk}, element), bits = VectorType::get({chunk}, builder.getI1Type());
  Value zero = constantIndex(0);
  // The line is loaded where it is, also what no lane reads: that mask is two comparisons with the lanes' numbers.
  Value whole = everyNth(element, *stride, /*before=*/0, [&](int64_t lane, int64_t number) -> Value {
    SmallVector<Value> here(at);
    here.back() = add(here.back(), lane * *stride + number * chunk);
    if (isInside(load))
      return vector::LoadOp::create(builder, loc, part, memory, here);
    Value left = arith::MaxSIOp::create(builder, loc, sub(zero, here.back()), zero);
    Value right = sub(constantIndex(type.getShape().back()), here.back());
    Value beside = vector::CreateMaskOp::create(builder, loc, bits, left);
    Value upTo = vector::CreateMaskOp::create(builder, loc, bits, right);
    Value inside = arith::XOrIOp::create(builder, loc, upTo, arith::AndIOp::create(builder, loc, upTo, beside));
    return vector::MaskedLoadOp::create(builder, loc, part, memory, here, inside, zeros(part));
  });
  if (!lanesRead)
    return whole;
  return arith::SelectOp::create(builder, loc, lanesRead, whole, zeros(cast<VectorType>(whole.getType()))).getResult();
}

Value NestMemory::everyNth(Type element, int64_t stride, int64_t before,
                           llvm::function_ref<Value(int64_t lane, int64_t number)> loadPart) {
  int64_t chunk = chunkOf(element);
  Value whole;
  for (int64_t lane = 0; lane < lanes; lane += chunk) {
    Value taken = loadPart(lane, 0);
    for (int64_t number = 1; number < stride; ++number) {
      SmallVector<int64_t> mask;
      for (int64_t i = 0; i < chunk; ++i) {
        int64_t position = i * stride + before - number * chunk;
        bool isHere = position >= 0 && position < chunk, isFirst = number == 1 && position < 0;
        mask.push_back(isHere || isFirst ? chunk + position : i);
      }
      taken = vector::ShuffleOp::create(builder, loc, taken, loadPart(lane, number), mask);
    }
    if (lanes == chunk)
      return taken;
    if (!whole)
      whole = zeros(VectorType::get({lanes}, element));
    whole =
        vector::InsertStridedSliceOp::create(builder, loc, taken, whole, ArrayRef<int64_t>{lane}, ArrayRef<int64_t>{1});
  }
  return whole;
}

Value NestMemory::gather(Value memory, SliceType type, Value linear, Value lanesRead) {
  auto vectorType = VectorType::get({lanes}, cast<MemRefType>(memory.getType()).getElementType());
  SmallVector<Value> zeroIndices(type.getRank(), constantIndex(0));
  Value all = lanesRead ? lanesRead : toVector(constant(builder.getBoolAttr(true)));
  return vector::GatherOp::create(builder, loc, vectorType, memory, zeroIndices, linear, all, zeros(vectorType));
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

/// Returns the dim of the nest that an index runs along, from zero and not beyond `extent`; -1 for any other index.
static int64_t ownDim(Value index, ComputeOp compute, int64_t extent) {
  auto op = index.getDefiningOp<IndexOp>();
  int64_t dim = op ? pureDim(op.getMap().getResult(0)) : -1;
  return dim >= 0 && compute.getExtents()[dim] <= extent ? dim : -1;
}

Value NestMemory::coordinate(Value index, int64_t extent, const IRMapping &values) {
  Value value = values.lookupOrDefault(index);
  if (ownDim(index, compute, extent) >= 0)
    return value;
  bool isVector = isa<VectorType>(value.getType());
  Value zero = constantIndex(0), last = constantIndex(extent - 1);
  Value low = arith::MaxSIOp::create(builder, loc, value, isVector ? toVector(zero) : zero);
  return arith::MinSIOp::create(builder, loc, low, isVector ? toVector(last) : last);
}

std::optional<SmallVector<Value>> NestMemory::startOfRow(GatherOp op, const IRMapping &values) {
  auto type = cast<SliceType>(op.getTable().getType());
  SmallVector<Value> at;
  for (auto [index, extent, stride] :
       llvm::zip(op.getIndices(), type.getShape(), denseStrides(type.getShape()))) {
    bool isLast = at.size() + 1 == op.getIndices().size();
    if (isLast && ownDim(index, compute, extent) == vectorDim) {
      at.push_back(indices[vectorDim]);
      continue;
    }
    // Vectors of threads are aligned.
    if (isLast || isa<VectorType>(values.lookupOrDefault(index).getType()) || (threads && stride % lanes != 0))
      return std::nullopt;
    at.push_back(coordinate(index, extent, values));
  }
  return at;
}

Value NestMemory::emitGather(GatherOp op, const IRMapping &values, Value mask) {
  auto type = cast<SliceType>(op.getTable().getType());
  Value memory = outer.lookup(op.getTable());
  Type element = cast<MemRefType>(memory.getType()).getElementType(), result = op.getValue().getType();
  auto isLanes = [&](Value index) { return isa<VectorType>(values.lookupOrDefault(index).getType()); };
  if (llvm::none_of(op.getIndices(), isLanes)) {
    SmallVector<Value> at;
    for (auto [index, extent] : llvm::zip(op.getIndices(), type.getShape()))
      at.push_back(coordinate(index, extent, values));
    return fromStorage(memref::LoadOp::create(builder, loc, memory, at).getResult(), result);
  }
  if (std::optional<SmallVector<Value>> start = startOfRow(op, values))
    return fromStorage(loadContiguous(memory, element, *start, mask), result);
  Value linear = toVector(constantIndex(0));
  for (auto [index, extent, stride] : llvm::zip(op.getIndices(), type.getShape(), denseStrides(type.getShape()))) {
    Value step = arith::MulIOp::create(builder, loc, toVector(coordinate(index, extent, values)),
                                       toVector(constantIndex(stride)));
    linear = addValues(linear, step);
  }
  bool fits = type.getNumElements() < std::numeric_limits<int32_t>::max();
  auto lanesType = VectorType::get({lanes}, fits ? builder.getI32Type() : builder.getI64Type());
  linear = arith::IndexCastOp::create(builder, loc, lanesType, linear);
  return fromStorage(gather(memory, type, linear, mask), result);
}

void NestMemory::store(Value value, Value slice, SliceType type, AffineMap map, Value mask, bool streamed) {
  Value memory = outer.lookup(slice);
  Type element = cast<MemRefType>(memory.getType()).getElementType();
  Lanes kind = lanesOf(type, map);
  if (kind == Lanes::uniform) {
    memref::StoreOp::create(builder, loc, toStorage(value, element), memory, scalarIndices(map));
    return;
  }
  value = toStorage(toVector(value), element);
  if (kind == Lanes::scattered) {
    SmallVector<Value> zeroIndices(type.getRank(), constantIndex(0));
    Value all = mask ? mask : toVector(constant(builder.getBoolAttr(true)));
    vector::ScatterOp::create(builder, loc, Type(), memory, zeroIndices, linearIndex(type, map), all, value);
  } else if (mask) {
    vector::MaskedStoreOp::create(builder, loc, memory, scalarIndices(map), mask, value);
  } else {
    auto whole = vector::StoreOp::create(builder, loc, value, memory, scalarIndices(map));
    if (threads)
      whole.setAlignment(vectorBytes(element));
    else if (streamed && fillsRegisters(type, map)) {
      whole.setNontemporal(true);
      whole.setAlignment(shape.bytes);
    }
  }
}

int64_t NestMemory::vectorBytes(Type element) const { return std::min<int64_t>(16, lanes * elementBytes(element)); }

bool NestMemory::fillsRegisters(SliceType type, AffineMap map) {
  int64_t bytes = elementBytes(type.getElementType());
  SmallVector<int64_t> strides = denseStrides(type.getShape()), origin(map.getNumInputs(), 0);
  int64_t start = 0;
  for (auto [index, stride] : llvm::zip(map.compose(origin), strides))
    start += index * stride;
  if (start * bytes % shape.bytes != 0)
    return false;
  for (int64_t dim = 0; dim < static_cast<int64_t>(indices.size()); ++dim) {
    std::optional<int64_t> stride = strideAlong(map, strides, dim);
    int64_t step = dim != vectorDim                                       ? 1
                   : compute.getSizes()[dim] == compute.getExtents()[dim] ? lanes
                                                                          : std::gcd(lanes, compute.getSizes()[dim]);
    if (!stride || *stride * step * bytes % shape.bytes != 0)
      return false;
  }
  return true;
}

Value NestMemory::fromStorage(Value value, Type type) {
  if (!type.isInteger(1))
    return value;
  Value zero = constant(IntegerAttr::get(getElementTypeOrSelf(value.getType()), 0));
  if (isa<VectorType>(value.getType()))
    zero = toVector(zero);
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, value, zero);
}

Value NestMemory::toStorage(Value value, Type element) {
  if (getElementTypeOrSelf(value.getType()) == element)
    return value;
  return arith::ExtUIOp::create(builder, loc, withShape(value, element), value);
}

void NestMemory::findNextOutputs() {
  ComputeOp next = nextNest();
  if (vectorDim < 0 || !next || next.getMicroKernel() || next.getVector() != compute.getVector() ||
      next.getSizes() != compute.getSizes() || next.getOffsetDims() != compute.getOffsetDims() ||
      next.getOffsets() != compute.getOffsets())
    return;
  for (auto storeOp : next.getBody().getOps<StoreOp>())
    if (storeOp.getSlice().getType().getSpace() == Space::global && !storeOp.getStreamed() &&
        lanesOf(storeOp.getSlice().getType(), storeOp.getMap()) == Lanes::contiguous)
      nextOutputs.push_back(storeOp);
}

ComputeOp NestMemory::nextNest() {
  for (Operation *next = compute->getNextNode(); isa_and_nonnull<SyncOp, ComputeOp>(next); next = next->getNextNode())
    if (auto nest = dyn_cast<ComputeOp>(next)) {
      if (nest.getExtents() == compute.getExtents())
        return nest;
      if (!compute.getRunning())
        break;
    }
  return {};
}
