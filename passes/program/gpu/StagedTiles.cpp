// Considers inputs, then outputs: finds the tile by all accesses, compares the sectors that nests and a copy would
// touch, and stages the tile if the copy touches fewer and the block still has room and stays resident.
#include "passes/program/gpu/StagedTiles.h"
#include "passes/support/BestFit.h"

#include "dialects/tile/BufferOffsets.h"
#include "dialects/tile/TileAttributeNames.h"
#include "passes/program/Slices.h"
#include "passes/program/gpu/AccessSectors.h"
#include "passes/program/gpu/ClusterAttr.h"
#include "passes/program/gpu/PartWork.h"
#include "passes/program/gpu/ResidentWeights.h"
#include "passes/program/gpu/TileCopy.h"
#include "passes/target/Occupancy.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {

struct NestAccess {
  ComputeOp compute;
  Operation *op;
  AffineMap map;
};

class TileStager {
public:
  TileStager(ParallelOp part, int64_t threads, const Target &target)
      : part(part), shape{threads, blockShapeOf(part).group}, target(target),
        weights(possibleWeights(part->getParentOfType<ProgramOp>(), target)) {}

  SmallVector<StagedTile> choose() {
    Block &walk = part.getWalk().getBody().front();
    if (!llvm::all_of(walk, [](Operation &op) { return isa<AllocOp, ComputeOp, SyncOp>(op); }))
      return {};
    // A contraction copies its operands itself, and the nests that read its accumulators run with its thread mapping.
    if (llvm::any_of(walk.getOps<ComputeOp>(), [](ComputeOp compute) { return compute.getMicroKernel().has_value(); }))
      return {};
    collect();
    for (auto &[slice, accesses] : loads)
      if (!stores.contains(slice) && !accumulated.contains(slice))
        consider(slice, accesses, /*isOutput=*/false);
    for (auto &[slice, accesses] : stores)
      if (!loads.contains(slice) && !accumulated.contains(slice) && accesses.size() == 1)
        consider(slice, accesses, /*isOutput=*/true);
    return std::move(staged);
  }

private:
  void collect() {
    bytes = boundBufferBytes(part);
    int64_t scratch = 0;
    part.walk([&](ComputeOp compute) {
      scratch = std::max(scratch, combiningScratchBytes(compute, mapNest(compute, shape)));
      for (Operation &op : compute.getBodyBlock()) {
        if (auto load = dyn_cast<LoadOp>(op); load && isGlobal(load.getSlice()))
          loads[load.getSlice()].push_back({compute, load, load.getMap()});
        if (auto store = dyn_cast<StoreOp>(op); store && isGlobal(store.getSlice()))
          stores[store.getSlice()].push_back({compute, store, store.getMap()});
      }
      accumulated.insert(compute.getAccs().begin(), compute.getAccs().end());
    });
    bytes += offsetBytes(scratch);
  }

  static bool isCommon(const StagedTile &tile) {
    return !tile.isOutput && llvm::all_of(tile.gridDims, [](int64_t dim) { return dim < 0; });
  }

  static bool isGlobal(Value slice) { return cast<SliceType>(slice.getType()).getSpace() == Space::global; }
  static int64_t offsetBytes(int64_t bytes) { return llvm::alignTo(bytes, kBufferAlignment); }

  void consider(Value slice, ArrayRef<NestAccess> accesses, bool isOutput) {
    StagedTile tile;
    tile.slice = slice;
    tile.isOutput = isOutput;
    auto type = cast<SliceType>(slice.getType());
    for (const NestAccess &access : accesses)
      if (!place(tile, type, access))
        return;
    if (!isOneRun(type.getShape(), tile.sizes) && !isSectorRuns(type.getShape(), tile.sizes, type.getElementBytes()))
      return;
    for (const NestAccess &access : accesses)
      tile.directSectors += accessSectors(access.compute, shape, type, access.map);
    tile.stagedSectors = copySectors(tile, type);
    if (isCommon(tile))
      tile.cluster = clusterOf(part);
    tile.stagedSectors /= static_cast<double>(tile.cluster);
    Access stated = statedAccess(part, slice);
    // Sectors are counted exactly. A copy takes instructions and a barrier besides, which a few less do not make up for.
    bool pays = tile.directSectors > target.costs.gpu.worthCopying * tile.stagedSectors,
         isWhole = stated == Access::whole;
    if (stated == Access::direct || !(pays || isWhole))
      return;
    reuseBuffer(tile, type, accesses);
    tile.fits = bytes + tile.bytes <= target.blockBytes &&
                (isWhole || isReadByRows(tile) || leavesBlocks(tile.bytes)) &&
                staysResident(part->getParentOfType<ProgramOp>(), sharedBytesBehind(weights, bytes + tile.bytes),
                              target);
    if (tile.fits)
      bytes += tile.bytes;
    staged.push_back(std::move(tile));
  }

  /// Merges the tile of this access into `tile`. Returns false if it differs from the tile of earlier accesses, or is
  /// not a box.
  bool place(StagedTile &tile, SliceType type, const NestAccess &access) {
    ComputeOp compute = access.compute;
    SmallVector<int64_t> sizes, gridDims;
    llvm::SmallBitVector used(compute.getSizes().size());
    for (auto [index, extent] : llvm::zip(access.map.getResults(), type.getShape())) {
      int64_t own = offsetDimOf(compute, index, extent);
      bool whole = own < 0 && dependsOnNoOffset(compute, index);
      if (own < 0 && !whole)
        return false;
      if (tile.isOutput && !takesEveryElement(compute, index, extent, used))
        return false;
      gridDims.push_back(own < 0 ? -1 : gridDimOf(compute, own));
      sizes.push_back(own < 0 ? extent : compute.getSizes()[own]);
      if (own >= 0 && llvm::count(gridDims, gridDims.back()) > 1)
        return false;
    }
    for (auto [dim, extent] : llvm::enumerate(compute.getExtents()))
      if (tile.isOutput && extent > 1 && !used.test(dim))
        return false;
    bool isFirst = tile.sizes.empty();
    if (isFirst) {
      tile.sizes = sizes;
      tile.gridDims = gridDims;
    }
    return tile.sizes == sizes && llvm::all_of(llvm::zip(tile.gridDims, gridDims), [&](auto dims) {
             auto [a, b] = dims;
             return a == b || (!moves(a) && !moves(b));
           });
  }

  /// Returns the dim of the nest that the index is, if tiles move along it, or -1.
  int64_t offsetDimOf(ComputeOp compute, AffineExpr index, int64_t extent) {
    auto dim = dyn_cast<AffineDimExpr>(index);
    if (!dim || !llvm::is_contained(compute.getOffsetDims(), dim.getPosition()) ||
        compute.getExtents()[dim.getPosition()] != extent)
      return -1;
    int64_t grid = gridDimOf(compute, dim.getPosition());
    bool same = grid >= 0 && part.getTiles()[grid] == compute.getSizes()[dim.getPosition()];
    return same ? static_cast<int64_t>(dim.getPosition()) : -1;
  }

  int64_t gridDimOf(ComputeOp compute, int64_t dim) {
    const int64_t *place = llvm::find(compute.getOffsetDims(), dim);
    auto offset = dyn_cast<BlockArgument>(compute.getOffsets()[place - compute.getOffsetDims().begin()]);
    return offset && offset.getOwner() == &part.getWalk().getBody().front() ? offset.getArgNumber() : -1;
  }

  /// Returns true if `grid` is a dim of the grid with several tiles along it.
  bool moves(int64_t grid) { return grid >= 0 && part.getTiles()[grid] < part.getExtents()[grid]; }

  bool dependsOnNoOffset(ComputeOp compute, AffineExpr index) {
    for (int64_t dim : compute.getOffsetDims()) {
      int64_t grid = gridDimOf(compute, dim);
      bool always = grid >= 0 && !moves(grid); // the offset is always zero
      if (!always && (index.isFunctionOfDim(dim) || index.isFunctionOfSymbol(dim)))
        return false;
    }
    return true;
  }

  static bool takesEveryElement(ComputeOp compute, AffineExpr index, int64_t extent, llvm::SmallBitVector &used) {
    auto dim = dyn_cast<AffineDimExpr>(index);
    if (!dim)
      return extent == 1;
    bool whole = compute.getExtents()[dim.getPosition()] == extent && !used.test(dim.getPosition());
    used.set(dim.getPosition());
    return whole;
  }

  double copySectors(const StagedTile &tile, SliceType type) {
    int64_t elements = 1, grain = 0;
    SmallVector<int64_t> strides = denseStrides(type.getShape());
    for (auto [size, grid, stride] : llvm::zip(tile.sizes, tile.gridDims, strides)) {
      elements *= size;
      if (grid >= 0)
        grain = std::gcd(grain, size * stride);
    }
    double sectors = static_cast<double>(elements * type.getElementBytes()) / kSectorBytes;
    return sectors + (grain * type.getElementBytes() % kSectorBytes == 0 ? 0 : 1);
  }

  /// Reuses buffers: an input that the nests already hold in a buffer of the same shape needs no other, and an output
  /// can take the buffer of an input that is read for the last time at the point where the output is written.
  void reuseBuffer(StagedTile &tile, SliceType type, ArrayRef<NestAccess> accesses) {
    int64_t elements = 1;
    for (int64_t size : tile.sizes)
      elements *= size;
    tile.bytes = offsetBytes(elements * type.getElementBytes() + kCopyBytes);
    if (tile.isOutput) {
      for (auto [i, input] : llvm::enumerate(staged))
        if (!input.isOutput && input.fits && sharesPlace(input, tile, accesses.front())) {
          tile.inPlaceOf = i;
          tile.bytes = 0;
          return;
        }
      return;
    }
    for (const NestAccess &access : accesses)
      if (Value held = heldBuffer(tile, access)) {
        tile.held = held;
        tile.bytes -= offsetBytes(bufferBytes(held.getDefiningOp<AllocOp>()));
        return;
      }
  }

  /// Returns the buffer in which a nest stores what it loads for later nests.
  Value heldBuffer(const StagedTile &tile, const NestAccess &access) {
    auto load = cast<LoadOp>(access.op);
    if (load.getGuard())
      return {};
    for (Operation *user : load.getValue().getUsers()) {
      auto store = dyn_cast<StoreOp>(user);
      auto alloc = store ? store.getSlice().getDefiningOp<AllocOp>() : AllocOp();
      if (!alloc || alloc.getType().getShape() != ArrayRef(tile.sizes) || isAccumulated(alloc.getSlice()))
        continue;
      if (store.getMap() != localMapOf(tile, access.map) || isStoredElsewhere(store))
        continue;
      return alloc.getSlice();
    }
    return {};
  }

  bool isAccumulated(Value slice) { return accumulated.contains(slice); }

  static bool isStoredElsewhere(StoreOp store) {
    return llvm::any_of(store.getSlice().getUsers(), [&](Operation *user) {
      auto other = dyn_cast<StoreOp>(user);
      return isa<MoveOp>(user) || (other && other != store);
    });
  }

  static bool isResident(Value buffer) { return buffer && residentTileNumber(buffer.getDefiningOp<AllocOp>()) >= 0; }

  bool sharesPlace(const StagedTile &input, const StagedTile &output, NestAccess write) {
    if (isResident(input.held))
      return false; // a later phase reads it
    auto type = cast<SliceType>(input.slice.getType()), own = cast<SliceType>(output.slice.getType());
    for (const StagedTile &other : staged)
      if (other.isOutput && other.inPlaceOf >= 0 && &staged[other.inPlaceOf] == &input)
        return false;
    if (type.getElementType() != own.getElementType() || type.getShape() != own.getShape() ||
        input.sizes != output.sizes || input.gridDims != output.gridDims || !write.compute.getAccs().empty())
      return false;
    AffineMap map = localMapOf(output, write.map);
    auto isEarlierOrSamePoint = [&](ComputeOp reader, AffineMap at) {
      return reader == write.compute ? at == map : reader->isBeforeInBlock(write.compute);
    };
    for (const NestAccess &read : loads[input.slice])
      if (!isEarlierOrSamePoint(read.compute, localMapOf(input, read.map)))
        return false;
    if (!input.held)
      return true;
    return llvm::all_of(input.held.getUsers(), [&](Operation *user) {
      auto load = dyn_cast<LoadOp>(user);
      return !load || isEarlierOrSamePoint(load->getParentOfType<ComputeOp>(), load.getMap());
    });
  }

  /// Returns true if several rows of the tile, or the blocks of a cluster, read it. The plan has counted its bytes
  /// (BlockShapes).
  bool isReadByRows(const StagedTile &tile) {
    return tile.cluster > 1 || (!tile.isOutput && llvm::any_of(llvm::enumerate(part.getTiles()), [&](auto entry) {
             return entry.value() > 1 && !llvm::is_contained(tile.gridDims, static_cast<int64_t>(entry.index()));
           }));
  }

  /// Returns true if at least half of the warps stay resident, or enough of them to hide latencies.
  bool leavesBlocks(int64_t more) {
    auto resident = [&](int64_t shared) {
      return shape.threads * residentBlocks(target.gpu, shape.threads, shared, kUnknownRegisters);
    };
    return 2 * resident(bytes + more) >= std::min(resident(bytes), target.gpu.threadsPerSm);
  }

  ParallelOp part;
  BlockShape shape;
  const Target &target;
  SmallVector<ResidentWeight> weights; ///< of a repeated kernel, which tiles leave room for
  int64_t bytes = 0;                                         ///< bytes of all buffers, including those that could share
                                                             ///< memory
  llvm::MapVector<Value, SmallVector<NestAccess>> loads, stores; ///< accesses to bindings
  llvm::SmallPtrSet<Value, 4> accumulated;
  SmallVector<StagedTile> staged;
};
} // namespace

Access tilewright::statedAccess(ParallelOp part, Value slice) {
  auto accesses = part->getAttrOfType<ArrayAttr>(kAccessesAttr);
  auto binding = dyn_cast<BlockArgument>(slice);
  return accesses && binding ? cast<AccessAttr>(accesses[binding.getArgNumber()]).getValue() : Access::derived;
}

AffineMap tilewright::startOf(const StagedTile &tile, ParallelOp part) {
  MLIRContext *context = part.getContext();
  AffineExpr start = getAffineConstantExpr(0, context);
  SmallVector<int64_t> strides = denseStrides(cast<SliceType>(tile.slice.getType()).getShape());
  for (auto [grid, stride] : llvm::zip(tile.gridDims, strides))
    if (grid >= 0)
      start = start + getAffineDimExpr(grid, context) * stride;
  return AffineMap::get(part.getExtents().size(), 0, start);
}

AffineMap tilewright::localMapOf(const StagedTile &tile, AffineMap map) {
  SmallVector<AffineExpr> results;
  for (auto [index, grid] : llvm::zip(map.getResults(), tile.gridDims)) {
    bool moves = grid >= 0 && isa<AffineDimExpr>(index); // otherwise there is one tile along the dim
    results.push_back(moves ? index - getAffineSymbolExpr(cast<AffineDimExpr>(index).getPosition(), index.getContext())
                            : index);
  }
  return AffineMap::get(map.getNumDims(), map.getNumSymbols(), results, map.getContext());
}

void StagedTile::print(llvm::raw_ostream &os) const {
  os << (isOutput ? "output" : "input") << " tile [";
  llvm::interleaveComma(sizes, os);
  os << llvm::format("]: %.1f sectors a tile, %.1f by a copy, ", directSectors, stagedSectors);
  os << bytes << " bytes more of shared memory" << (cluster > 1 ? ", once a cluster" : "");
}

SmallVector<StagedTile> tilewright::chooseStagedTiles(ParallelOp part, int64_t threads, const Target &target) {
  return TileStager(part, threads, target).choose();
}
