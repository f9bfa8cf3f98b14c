// Keeps tiles that several phases of a kernel access on chip, as PowerFusion and Souffle do. The plan makes blocks take
// the same elements in these phases (ResidentTiles); this pass keeps the tile in shared memory across the barriers.
#include "dialects/tile/BufferOffsets.h"
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/program/PartBuffers.h"
#include "passes/program/gpu/PartWork.h"
#include "passes/program/gpu/ScratchOffsets.h"
#include "passes/program/gpu/StagedTiles.h"
#include "passes/support/BestFit.h"
#include "passes/target/TargetOrError.h"

#include <map>

namespace tilewright {
#define GEN_PASS_DEF_KEEPRESIDENTTILES
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
/// A part that uses a resident tile, and the binding that the tile comes from.
struct TileUser {
  ParallelOp part;
  Value binding;
};

/// A resident tile: the part that writes it and the parts that read it. Rewritten movement may have left nothing to
/// read, or joined a part with those beside it; such a tile stays in memory.
struct ResidentTileUsers {
  int64_t number;
  TileUser writer;
  SmallVector<TileUser> readers;
};

template <typename Access> SmallVector<Access> accessesOf(const TileUser &tileUser) {
  SmallVector<Access> accesses;
  ParallelOp part = tileUser.part;
  part.walk([&](Access access) {
    if (access.getSlice() == tileUser.binding)
      accesses.push_back(access);
  });
  return accesses;
}

/// Returns true for a part whose blocks are numbered from 0.
bool isFirstOfPhase(ParallelOp part) { return !isa_and_nonnull<ParallelOp>(part->getPrevNode()); }

SmallVector<ResidentTileUsers> takeTiles(ProgramOp program) {
  std::map<int64_t, SmallVector<TileUser>> byNumber;
  for (auto part : program.getBody().getOps<ParallelOp>()) {
    auto keeps = dyn_cast_or_null<DenseI64ArrayAttr>(part->removeAttr(kResidentAttr));
    ArrayRef<int64_t> pairs = keeps ? keeps.asArrayRef() : ArrayRef<int64_t>();
    for (; pairs.size() > 1; pairs = pairs.drop_front(2))
      byNumber[pairs[0]].push_back({part, program.getBody().getArgument(pairs[1])});
  }
  SmallVector<ResidentTileUsers> tiles;
  for (auto &[number, tileUsers] : byNumber) {
    if (llvm::any_of(tileUsers, [](TileUser user) { return !isFirstOfPhase(user.part); }))
      continue;
    auto reads = [](const TileUser &user) { return !accessesOf<LoadOp>(user).empty(); };
    SmallVector<TileUser> readers = llvm::to_vector(llvm::make_filter_range(llvm::drop_begin(tileUsers), reads));
    if (!readers.empty())
      tiles.push_back({number, tileUsers.front(), std::move(readers)});
  }
  return tiles;
}

/// Returns the tile of the binding that a load or store accesses, each element once if `once`; none if it accesses
/// anything else.
template <typename Access> std::optional<StagedTile> tileOf(Access access, ParallelOp part, bool once) {
  auto compute = access->template getParentOfType<ComputeOp>();
  if (compute.getMicroKernel() || compute->getParentOp() != part.getWalk())
    return std::nullopt;
  StagedTile tile;
  tile.slice = access.getSlice();
  llvm::SmallBitVector used(compute.getSizes().size());
  for (auto [index, extent] : llvm::zip(access.getMap().getResults(), access.getSlice().getType().getShape())) {
    auto dim = dyn_cast<AffineDimExpr>(index);
    if (!dim && extent == 1) {
      tile.sizes.push_back(1);
      tile.gridDims.push_back(-1);
      continue;
    }
    if (!dim || compute.getExtents()[dim.getPosition()] != extent || used.test(dim.getPosition()))
      return std::nullopt;
    used.set(dim.getPosition());
    tile.sizes.push_back(compute.getSizes()[dim.getPosition()]);
    auto offset = llvm::find(compute.getOffsetDims(), dim.getPosition());
    bool moves = offset != compute.getOffsetDims().end();
    Value by = moves ? compute.getOffsets()[offset - compute.getOffsetDims().begin()] : Value();
    if (extent % tile.sizes.back() != 0 ||
        (moves ? by.getParentBlock() != compute->getBlock() : tile.sizes.back() != extent))
      return std::nullopt;
    tile.gridDims.push_back(moves ? static_cast<int64_t>(cast<BlockArgument>(by).getArgNumber()) : -1);
  }
  for (auto [dim, size] : llvm::enumerate(compute.getSizes()))
    if (once && size > 1 && !used.test(dim))
      return std::nullopt;
  return tile;
}

int64_t elementsOf(const StagedTile &tile) {
  int64_t elements = 1;
  for (int64_t size : tile.sizes)
    elements *= size;
  return elements;
}

/// Returns the buffer of the tile's shape in which the nest stores what it loads for later nests, or null.
AllocOp heldIn(LoadOp load, const StagedTile &tile) {
  for (Operation *user : load.getValue().getUsers()) {
    auto store = dyn_cast<StoreOp>(user);
    auto alloc = store ? store.getSlice().getDefiningOp<AllocOp>() : AllocOp();
    if (alloc && alloc.getType().getShape() == ArrayRef(tile.sizes) && residentTileNumber(alloc) < 0 &&
        store.getMap() == localMapOf(tile, load.getMap()) &&
        llvm::count_if(alloc->getUsers(), llvm::IsaPred<StoreOp>) == 1)
      return alloc;
  }
  return {};
}

class Rewriter {
public:
  /// Keeps the tile resident. Returns an empty string, or why that cannot be.
  std::string keep(const ResidentTileUsers &users) {
    std::optional<StagedTile> left = leave(users);
    if (!left)
      return "a part does not access each element of its tile exactly once";
    for (const TileUser &reader : users.readers)
      if (std::string why = find(users.number, *left, reader); !why.empty())
        return why;
    return "";
  }

private:
  /// Makes the writer leave the tile that it stores or loads in a buffer, and returns it. Returns nothing if it accesses
  /// anything else than a tile.
  std::optional<StagedTile> leave(const ResidentTileUsers &users) {
    SmallVector<LoadOp> loads = accessesOf<LoadOp>(users.writer);
    SmallVector<StoreOp> stores = accessesOf<StoreOp>(users.writer);
    ParallelOp part = users.writer.part;
    std::optional<StagedTile> tile = !stores.empty()  ? tileOf(stores.front(), part, /*once=*/true)
                                     : !loads.empty() ? tileOf(loads.front(), part, /*once=*/true)
                                                      : std::nullopt;
    if (!tile || stores.size() > 1 || (stores.empty() && loads.front().getGuard()))
      return std::nullopt;
    if (!stores.empty())
      copyTo(allocate(users.number, part, *tile), stores.front().getValue(), stores.front(), *tile);
    else if (AllocOp held = heldIn(loads.front(), *tile))
      mark(held, users.number, part, *tile);
    else
      copyTo(allocate(users.number, part, *tile), loads.front().getValue(), loads.front(), *tile);
    return tile;
  }

  /// Makes a reader load from the buffer. Returns an empty string, or why that cannot be.
  std::string find(int64_t number, const StagedTile &left, const TileUser &reader) {
    std::optional<StagedTile> found;
    SmallVector<LoadOp> loads = accessesOf<LoadOp>(reader);
    for (LoadOp load : loads) {
      std::optional<StagedTile> own = load.getGuard() ? std::nullopt : tileOf(load, reader.part, /*once=*/false);
      if (!own || (found && (own->sizes != found->sizes || own->gridDims != found->gridDims)))
        return "a part reads anything else than its tile";
      found = own;
    }
    if (elementsOf(*found) != elementsOf(left))
      return "the tiles of two parts have different sizes";
    AllocOp buffer = allocate(number, reader.part, *found);
    for (LoadOp load : loads) {
      load.setMap(localMapOf(*found, load.getMap()));
      load.getSliceMutable().assign(buffer.getSlice());
    }
    return "";
  }

  AllocOp allocate(int64_t number, ParallelOp part, const StagedTile &tile) {
    OpBuilder builder = OpBuilder::atBlockBegin(&part.getWalk().getBody().front());
    Type element = cast<SliceType>(tile.slice.getType()).getElementType();
    auto type = SliceType::get(part.getContext(), tile.sizes, element, Space::block);
    auto alloc = AllocOp::create(builder, part.getLoc(), type, IntegerAttr());
    mark(alloc, number, part, tile);
    return alloc;
  }

  static void mark(AllocOp alloc, int64_t number, ParallelOp part, const StagedTile &tile) {
    alloc->setAttr(kResidentTileAttr, IntegerAttr::get(IntegerType::get(alloc.getContext(), 64), number));
    alloc->setAttr(kAlignedAsAttr, AffineMapAttr::get(startOf(tile, part)));
  }

  /// Stores the value of a load or store of the tile in the buffer as well.
  template <typename Access> static void copyTo(AllocOp buffer, Value value, Access access, const StagedTile &tile) {
    OpBuilder builder(access->getBlock(), std::next(access->getIterator()));
    StoreOp::create(builder, access.getLoc(), value, buffer.getSlice(), localMapOf(tile, access.getMap()),
                    /*streamed=*/false);
  }
};

/// Returns the most shared memory of a block in any phase, in bytes.
int64_t sharedBytesOfPhases(ProgramOp program, const Target &target) {
  int64_t threads = threadsOf(program), most = 0;
  int64_t resident = placeByBestFit(residentBuffersOf(program).ranges).end;
  for (auto part : program.getBody().getOps<ParallelOp>()) {
    uint64_t own = resident + placeByBestFit(buffersOf(part).ranges).end;
    int64_t scratch = scratchOffsets(part, threads, target).bytes;
    most = std::max(most, static_cast<int64_t>(llvm::alignTo(own, scratchAlignment(part))) + scratch);
  }
  return most;
}

struct KeepResidentTiles : tilewright::impl::KeepResidentTilesBase<KeepResidentTiles> {
  using KeepResidentTilesBase::KeepResidentTilesBase;

  void runOnOperation() override {
    ProgramOp program = getOperation();
    FailureOr<Target> known = targetOrError(program, target);
    if (failed(known))
      return signalPassFailure();
    Rewriter rewriter;
    ParallelOp last;
    for (const ResidentTileUsers &users : takeTiles(program)) {
      ParallelOp first = users.readers.front().part;
      if (std::string why = rewriter.keep(users); !why.empty())
        return refuse(first, why);
      last = first;
      ++numResident;
    }
    int64_t shared = last ? sharedBytesOfPhases(program, *known) : 0;
    if (last && !staysResident(program, shared, *known))
      refuse(last, "blocks would have " + std::to_string(shared) +
                       " bytes of shared memory, so that not all of them are sure to be resident");
  }

private:
  void refuse(ParallelOp part, StringRef why) {
    part.emitError("a tile of an earlier phase cannot stay in shared memory: ") << why;
    signalPassFailure();
  }
};
} // namespace
