// Accesses that jump from lane to lane would gather or scatter, an element at a time. Where neighbours in memory are
// neighbours along another dim of the tile, the tile is turned in registers instead, by a copy of its own from or to a
// buffer in which lanes are neighbours. Where all accesses of a nest have their neighbours along the same other dim,
// its lanes go along that.
#include "dialects/tile/TileDialect.h"
#include "passes/Passes.h"
#include "passes/program/cpu/InterleaveK.h"
#include "passes/program/Slices.h"
#include "passes/target/TargetOrError.h"

namespace tilewright {
#define GEN_PASS_DEF_STAGETRANSPOSES
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
/// The least number of lanes for which squares of vectors are worth a buffer.
constexpr int64_t kLeastSide = 8;
constexpr int64_t kMostStrided = 4; ///< elements between lanes up to which loads and shuffles are quicker
constexpr int64_t kLeastBytes = 2;  ///< of an element: squares of narrower ones are left to gathers

/// What one nest reads, writes or accumulates across its lanes, and the buffer for it: a dim for each of the nest's
/// dims that the index uses, the vector dim last.
struct Turned {
  ComputeOp nest;
  Value slice;
  AffineMap map;
  bool isWritten; ///< by stores, or as an accumulator if there are none
  SmallVector<int64_t> dims;
  SmallVector<Operation *> accesses;

  SliceType bufferType() const {
    SmallVector<int64_t> shape =
        llvm::map_to_vector(dims, [&](int64_t dim) { return ComputeOp(nest).getSizes()[dim]; });
    auto type = cast<SliceType>(slice.getType());
    return SliceType::get(type.getContext(), shape, type.getElementType(), Space::block);
  }
};

/// The dims that the access depends on, the vector dim last; or none if elements lie along that, or it has no part.
SmallVector<int64_t> turnedDims(ComputeOp nest, SliceType type, AffineMap map, bool isWritten) {
  int64_t least = isWritten ? 2 : kMostStrided + 1;
  int64_t vector = nest.getVector(), innermost = innermostDim(type, map);
  if (vector < 0 || innermost < 0 || innermost == vector || !map.isFunctionOfDim(vector) ||
      type.getElementBytes() < kLeastBytes || nest.getSizes()[vector] < kLeastSide ||
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

void collect(ComputeOp nest, SmallVectorImpl<Turned> &turned) {
  auto add = [&](Operation *op, Value slice, AffineMap map, bool isWritten) {
    auto same = [&](const Turned &other) {
      return other.nest == nest && other.slice == slice && other.map == map && !other.isWritten && !isWritten;
    };
    if (Turned *known = llvm::find_if(turned, same); known != turned.end()) {
      known->accesses.push_back(op);
      return;
    }
    SmallVector<Operation *> accesses(op ? 1 : 0, op);
    if (SmallVector<int64_t> dims = turnedDims(nest, cast<SliceType>(slice.getType()), map, isWritten); !dims.empty())
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

/// Where the nest's loads and stores are.
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

/// The dim along which all that the nest touches has its neighbours; -1: there is none, or it is summed up.
int64_t neighbourDim(ComputeOp nest) {
  auto accesses = accessesOf(nest);
  auto *across = llvm::find_if(accesses, [&](auto access) { return access.second.isFunctionOfDim(nest.getVector()); });
  int64_t found = across != accesses.end() ? innermostDim(across->first, across->second) : -1;
  bool same = found >= 0 && nest.getAccs().empty() && llvm::all_of(accesses, [&](auto access) {
                bool isUniform =
                    !access.second.isFunctionOfDim(found) && !access.second.isFunctionOfDim(nest.getVector());
                return isUniform || innermostDim(access.first, access.second) == found;
              });
  return same && nest.getSizes()[found] >= kLeastSide ? found : -1;
}

/// Whether a nest does nothing else, which turns it already.
bool isCopy(ComputeOp nest) { return nest.getAccs().empty() && llvm::hasNItems(nest.getBodyBlock(), 3); }

/// Nests that turn nothing, but whose lanes lie across all that they touch.
SmallVector<std::pair<ComputeOp, int64_t>> decideVectors(ParallelOp part) {
  SmallVector<std::pair<ComputeOp, int64_t>> vectors;
  for (auto nest : part.getWalk().getBody().front().getOps<ComputeOp>())
    if (int64_t lanes = nest.getVector(), dim = lanes < 0 ? -1 : neighbourDim(nest); dim >= 0 && dim != lanes)
      vectors.emplace_back(nest, dim);
  return vectors;
}

/// What is turned in a part, in order, as long as the workgroup's memory lasts.
SmallVector<Turned> decide(ParallelOp part, int64_t blockBytes) {
  SmallVector<Turned> turned, taken;
  int64_t bytes = 0;
  part.walk([&](AllocOp alloc) { bytes += alloc.getType().getNumBytes(); });
  for (auto nest : part.getWalk().getBody().front().getOps<ComputeOp>())
    if (!nest.getMicroKernel() && !isCopy(nest))
      collect(nest, turned);
  for (Turned &each : turned)
    if (bytes + each.bufferType().getNumBytes() <= blockBytes) {
      bytes += each.bufferType().getNumBytes();
      taken.push_back(std::move(each));
    }
  return taken;
}

/// The index into the buffer, over `rank` dims of which the place of the buffer's i-th is `places[i]`.
AffineMap bufferMap(MLIRContext *context, ArrayRef<int64_t> places, int64_t rank) {
  return AffineMap::get(rank, rank,
                        llvm::map_to_vector(places,
                                            [&](int64_t place) -> AffineExpr {
                                              return getAffineDimExpr(place, context) -
                                                     getAffineSymbolExpr(place, context);
                                            }),
                        context);
}

/// A nest over the buffer's dims with one load and one store.
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
  auto copy = ComputeOp::create(builder, nest.getLoc(), offsets, ValueRange(), extents, sizes, offsetDims,
                                ArrayRef<int64_t>(), places.back(), builder.getAffineMapArrayAttr({}),
                                builder.getArrayAttr({}), builder.getStrArrayAttr({}), StringAttr(), RunningAttr());
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
      for (auto [nest, dim] : decideVectors(part))
        nest.setVector(dim);
      for (const Turned &what : decide(part, known->blockBytes)) {
        turn(what);
        ++turned;
      }
      grouped += interleaveK(part, *known);
    }
  }
};
} // namespace
