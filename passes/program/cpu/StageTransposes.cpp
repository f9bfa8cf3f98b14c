// Transposes tiles in registers. An access that is strided along the vector dim would gather or scatter one element at
// a time. If it is contiguous along another dim of the tile, a separate copy transposes the tile in registers from or
// to a buffer in which the vector dim is contiguous. If all accesses of a nest are contiguous along the same other dim,
// the nest is vectorised along that dim instead.
#include "dialects/tile/TargetOf.h"
#include "dialects/tile/TileDialect.h"
#include "passes/Passes.h"
#include "passes/program/Slices.h"
#include "passes/program/cpu/InterleaveK.h"
#include "passes/target/TargetOrError.h"

namespace tilewright {
#define GEN_PASS_DEF_STAGETRANSPOSES
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
/// An access of a nest that is strided along the vector dim, and the buffer for it: one dim for each dim of the nest
/// that the index uses, the vector dim last.
struct Turned {
  ComputeOp nest;
  Value slice;
  AffineMap map;
  bool isWritten; ///< true if stores write it, or if it is an accumulator and there are no stores
  SmallVector<int64_t> dims;
  SmallVector<Operation *> accesses;

  SliceType bufferType() const {
    SmallVector<int64_t> shape =
        llvm::map_to_vector(dims, [&](int64_t dim) { return ComputeOp(nest).getSizes()[dim]; });
    auto type = cast<SliceType>(slice.getType());
    return SliceType::get(type.getContext(), shape, type.getElementType(), Space::block);
  }
};

/// Returns the dims that the access depends on, the vector dim last. Returns none if the access is contiguous along the
/// vector dim or does not depend on it.
SmallVector<int64_t> turnedDims(ComputeOp nest, SliceType type, AffineMap map, bool isWritten,
                                const CpuCosts &costs) {
  int64_t least = isWritten ? 2 : costs.stridedLanes + 1;
  int64_t vector = nest.getVector(), innermost = innermostDim(type, map);
  if (vector < 0 || innermost < 0 || innermost == vector || !map.isFunctionOfDim(vector) ||
      type.getElementBytes() < costs.transposedBytes || nest.getSizes()[vector] < costs.transposedLanes ||
      nest.getSizes()[innermost] < least)
    return {};
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < static_cast<int64_t>(map.getNumDims()); ++dim)
    if (dim != vector && map.isFunctionOfDim(dim))
      dims.push_back(dim);
  dims.push_back(vector);
  return dims;
}

AffineMap accMap(ComputeOp nest, int64_t acc) { return cast<AffineMapAttr>(nest.getAccMaps()[acc]).getValue(); }

void collect(ComputeOp nest, const CpuCosts &costs, SmallVectorImpl<Turned> &turned) {
  auto add = [&](Operation *op, Value slice, AffineMap map, bool isWritten) {
    auto same = [&](const Turned &other) {
      return other.nest == nest && other.slice == slice && other.map == map && !other.isWritten && !isWritten;
    };
    if (Turned *known = llvm::find_if(turned, same); known != turned.end()) {
      known->accesses.push_back(op);
      return;
    }
    SmallVector<Operation *> accesses(op ? 1 : 0, op);
    if (SmallVector<int64_t> dims = turnedDims(nest, cast<SliceType>(slice.getType()), map, isWritten, costs);
        !dims.empty())
      turned.push_back({nest, slice, map, isWritten, dims, accesses});
  };
  for (Operation &op : nest.getBodyBlock()) {
    if (auto load = dyn_cast<LoadOp>(op); load && !load.getGuard())
      add(load, load.getSlice(), load.getMap(), /*isWritten=*/false);
    else if (auto store = dyn_cast<StoreOp>(op))
      add(store, store.getSlice(), store.getMap(), /*isWritten=*/true);
  }
  for (auto [acc, slice] : llvm::enumerate(nest.getAccs()))
    if (!nest.getRunning())
      add(nullptr, slice, accMap(nest, acc), /*isWritten=*/true);
}

/// Returns the accesses of the nest's loads and stores.
SmallVector<std::pair<SliceType, AffineMap>> accessesOf(ComputeOp nest) {
  SmallVector<std::pair<SliceType, AffineMap>> accesses;
  for (Operation &op : nest.getBodyBlock()) {
    if (auto load = dyn_cast<LoadOp>(op))
      accesses.emplace_back(load.getSlice().getType(), load.getMap());
    else if (auto store = dyn_cast<StoreOp>(op))
      accesses.emplace_back(store.getSlice().getType(), store.getMap());
  }
  return accesses;
}

/// Returns the dim along which all accesses of the nest are contiguous, or -1 if there is none or it is reduced.
int64_t neighbourDim(ComputeOp nest, const CpuCosts &costs) {
  auto accesses = accessesOf(nest);
  auto *across = llvm::find_if(accesses, [&](auto access) { return access.second.isFunctionOfDim(nest.getVector()); });
  int64_t found = across != accesses.end() ? innermostDim(across->first, across->second) : -1;
  bool same = found >= 0 && nest.getAccs().empty() && llvm::all_of(accesses, [&](auto access) {
                bool isUniform =
                    !access.second.isFunctionOfDim(found) && !access.second.isFunctionOfDim(nest.getVector());
                return isUniform || innermostDim(access.first, access.second) == found;
              });
  return same && nest.getSizes()[found] >= costs.transposedLanes ? found : -1;
}

/// Returns true if the nest only copies, and therefore transposes already.
bool isCopy(ComputeOp nest) { return nest.getAccs().empty() && llvm::hasNItems(nest.getBodyBlock(), 3); }

/// Returns the nests that need no transposed buffer but a different vector dim, because all their accesses are strided
/// along their own.
SmallVector<std::pair<ComputeOp, int64_t>> decideVectors(ParallelOp part, const CpuCosts &costs) {
  SmallVector<std::pair<ComputeOp, int64_t>> vectors;
  for (auto nest : part.getWalk().getBody().front().getOps<ComputeOp>())
    if (int64_t lanes = nest.getVector(), dim = lanes < 0 ? -1 : neighbourDim(nest, costs); dim >= 0 && dim != lanes)
      vectors.emplace_back(nest, dim);
  return vectors;
}

/// Returns the accesses of a part to transpose, in order, as long as the workgroup's memory suffices.
SmallVector<Turned> decide(ParallelOp part, const Target &target) {
  SmallVector<Turned> turned, taken;
  int64_t bytes = 0;
  part.walk([&](AllocOp alloc) { bytes += alloc.getType().getNumBytes(); });
  for (auto nest : part.getWalk().getBody().front().getOps<ComputeOp>())
    if (!nest.getMicroKernel() && !isCopy(nest))
      collect(nest, target.costs.cpu, turned);
  for (Turned &each : turned)
    if (bytes + each.bufferType().getNumBytes() <= target.blockBytes) {
      bytes += each.bufferType().getNumBytes();
      taken.push_back(std::move(each));
    }
  return taken;
}

/// Returns the index into the buffer over `rank` dims; dim `places[i]` is index i of the buffer.
AffineMap bufferMap(MLIRContext *context, ArrayRef<int64_t> places, int64_t rank) {
  return AffineMap::get(rank, rank,
                        llvm::map_to_vector(places,
                                            [&](int64_t place) -> AffineExpr {
                                              return getAffineDimExpr(place, context) -
                                                     getAffineSymbolExpr(place, context);
                                            }),
                        context);
}

/// Builds the copy: a nest over the buffer's dims with one load and one store.
void buildCopy(OpBuilder &builder, const Turned &what, Value buffer) {
  ComputeOp nest = what.nest;
  MLIRContext *context = builder.getContext();
  SmallVector<int64_t> order(what.dims), extents, sizes, offsetDims, places(what.dims.size());
  llvm::sort(order);
  SmallVector<Value> offsets;
  SmallVector<AffineExpr> dims(nest.getExtents().size(), getAffineConstantExpr(0, context)), symbols(dims);
  for (auto [place, dim] : llvm::enumerate(order)) {
    extents.push_back(nest.getExtents()[dim]);
    sizes.push_back(nest.getSizes()[dim]);
    dims[dim] = getAffineDimExpr(place, context);
    symbols[dim] = getAffineSymbolExpr(place, context);
    places[llvm::find(what.dims, dim) - what.dims.begin()] = place;
    for (auto [offset, of] : llvm::zip(nest.getOffsets(), nest.getOffsetDims()))
      if (of == dim) {
        offsets.push_back(offset);
        offsetDims.push_back(place);
      }
  }
  int64_t rank = order.size();
  AffineMap outside = what.map.replaceDimsAndSymbols(dims, symbols, rank, rank);
  AffineMap inside = bufferMap(context, places, rank);
  auto copy =
      ComputeOp::create(builder, nest.getLoc(), offsets, ValueRange(), extents, sizes, offsetDims, ArrayRef<int64_t>(),
                        places.back(), builder.getAffineMapArrayAttr({}), builder.getArrayAttr({}),
                        builder.getStrArrayAttr({}), StringAttr(), GemmAttr(), RunningAttr());
  OpBuilder body = OpBuilder::atBlockEnd(&copy.getBody().emplaceBlock());
  Value from = what.isWritten ? buffer : what.slice, to = what.isWritten ? what.slice : buffer;
  Value value = LoadOp::create(body, nest.getLoc(), cast<SliceType>(from.getType()).getElementType(), from,
                               what.isWritten ? inside : outside, IntegerSetAttr());
  StoreOp::create(body, nest.getLoc(), value, to, what.isWritten ? outside : inside);
  YieldOp::create(body, nest.getLoc(), ValueRange());
}

void accumulateIn(Value buffer, AffineMap map, const Turned &what) {
  ComputeOp nest = what.nest;
  SmallVector<Attribute> maps(nest.getAccMaps().begin(), nest.getAccMaps().end());
  for (int64_t acc = 0; acc < static_cast<int64_t>(maps.size()); ++acc)
    if (nest.getAccs()[acc] == what.slice && accMap(nest, acc) == what.map) {
      nest.getAccsMutable()[acc].assign(buffer);
      maps[acc] = AffineMapAttr::get(map);
    }
  nest.setAccMapsAttr(ArrayAttr::get(nest.getContext(), maps));
}

void turn(const Turned &what) {
  ComputeOp nest = what.nest;
  OpBuilder builder(nest);
  Location loc = nest.getLoc();
  Value buffer = AllocOp::create(builder, loc, what.bufferType(), IntegerAttr());
  if (what.isWritten) {
    builder.setInsertionPointAfter(nest);
    SyncOp::create(builder, loc, Scope::block);
    buildCopy(builder, what, buffer);
  } else {
    buildCopy(builder, what, buffer);
    SyncOp::create(builder, loc, Scope::block);
  }
  AffineMap map = bufferMap(builder.getContext(), what.dims, nest.getExtents().size());
  if (what.accesses.empty())
    accumulateIn(buffer, map, what);
  for (Operation *access : what.accesses) {
    if (auto load = dyn_cast<LoadOp>(access)) {
      load.getSliceMutable().assign(buffer);
      load.setMap(map);
    } else {
      auto store = cast<StoreOp>(access);
      store.getSliceMutable().assign(buffer);
      store.setMap(map);
      store.setStreamed(false);
    }
  }
}

struct StageTransposes : tilewright::impl::StageTransposesBase<StageTransposes> {
  using StageTransposesBase::StageTransposesBase;

  void runOnOperation() override {
    FailureOr<Target> known = targetOrError(getOperation(), targetOf(getOperation(), target));
    if (failed(known))
      return signalPassFailure();
    for (auto part : getOperation().getBody().getOps<ParallelOp>()) {
      for (auto [nest, dim] : decideVectors(part, known->costs.cpu))
        nest.setVector(dim);
      for (const Turned &what : decide(part, *known)) {
        turn(what);
        ++turned;
      }
      grouped += interleaveK(part, *known);
    }
  }
};
} // namespace
