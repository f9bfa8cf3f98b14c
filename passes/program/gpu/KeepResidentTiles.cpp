// Keeps tiles that two phases of a kernel read on chip, as PowerFusion and Souffle do. The plan makes blocks take the
// same elements in both phases (ResidentTiles); this pass keeps the tile in shared memory across the barrier.
#include "dialects/tile/BufferOffsets.h"
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
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

/// A resident tile: the part that writes it and the part that reads it.
struct ResidentPair {
  int64_t number;
  TileUser writer, reader;
};

SmallVector<ResidentPair> takePairs(ProgramOp program) {
  std::map<int64_t, SmallVector<TileUser>> byNumber;
  for (auto part : program.getBody().getOps<ParallelOp>()) {
    auto keeps = dyn_cast_or_null<DenseI64ArrayAttr>(part->removeAttr(kResidentAttr));
    ArrayRef<int64_t> pairs = keeps ? keeps.asArrayRef() : ArrayRef<int64_t>();
    for (; pairs.size() > 1; pairs = pairs.drop_front(2))
      byNumber[pairs[0]].push_back({part, program.getBody().getArgument(pairs[1])});
  }
  SmallVector<ResidentPair> pairs;
  for (auto &[number, tileUsers] : byNumber)
    if (tileUsers.size() == 2 && tileUsers[0].part != tileUsers[1].part)
      pairs.push_back({number, tileUsers[0], tileUsers[1]});
  return pairs;
}

SmallVector<LoadOp> loadsOf(const TileUser &tileUser) {
  SmallVector<LoadOp> loads;
  ParallelOp part = tileUser.part;
  part.walk([&](LoadOp load) {
    if (load.getSlice() == tileUser.binding)
      loads.push_back(load);
  });
  return loads;
}

/// Returns the tile of the binding of which the load reads each element once; none if it reads anything else.
std::optional<StagedTile> tileReadBy(LoadOp load, ParallelOp part) {
  auto compute = load->getParentOfType<ComputeOp>();
  if (load.getGuard() || compute.getMicroKernel() || compute->getParentOp() != part.getWalk())
    return std::nullopt;
  StagedTile tile;
  tile.slice = load.getSlice();
  llvm::SmallBitVector used(compute.getSizes().size());
  for (auto [index, extent] : llvm::zip(load.getMap().getResults(), load.getSlice().getType().getShape())) {
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
    if (size > 1 && !used.test(dim))
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
  Rewriter(ProgramOp program, const Target &target) : program(program), target(target) {}

  /// Keeps the tile of `pair` resident. Returns an empty string, or why that cannot be.
  std::string keep(const ResidentPair &pair) {
    SmallVector<LoadOp> written = loadsOf(pair.writer), read = loadsOf(pair.reader);
    if (written.empty() || read.empty())
      return "one of the two parts does not read it";
    std::optional<StagedTile> left = tileReadBy(written.front(), pair.writer.part), found;
    for (LoadOp load : read) {
      std::optional<StagedTile> own = tileReadBy(load, pair.reader.part);
      if (!own || (found && (own->sizes != found->sizes || own->gridDims != found->gridDims)))
        return "a part does not read each element of its tile exactly once";
      found = own;
    }
    if (!left || elementsOf(*left) != elementsOf(*found))
      return "a part does not read each element of its tile exactly once";
    AllocOp held = heldIn(written.front(), *left);
    if (int64_t shared = sharedBytesWith(*left, held); !staysResident(program, shared, target))
      return "blocks would have " + std::to_string(shared) +
             " bytes of shared memory, so that not all of them are sure to be resident";
    leave(pair, written.front(), *left, held);
    AllocOp buffer = allocate(pair.number, pair.reader.part, *found);
    for (LoadOp load : read) {
      load.setMap(localMapOf(*found, load.getMap()));
      load.getSliceMutable().assign(buffer.getSlice());
    }
    return "";
  }

private:
  /// Returns an upper bound on the shared memory of a block in any phase.
  int64_t sharedBytesWith(const StagedTile &tile, AllocOp held) {
    int64_t threads = threadsOf(program), most = 0;
    int64_t resident = llvm::alignTo(
        elementsOf(tile) * cast<SliceType>(tile.slice.getType()).getElementBytes() + kCopyBytes, kBufferAlignment);
    for (auto part : program.getBody().getOps<ParallelOp>()) {
      bool holds = held && part->isAncestor(held);
      int64_t own = boundBufferBytes(part) + (holds ? kBufferAlignment : resident);
      most = std::max(most, own + static_cast<int64_t>(llvm::alignTo(scratchOffsets(part, threads, target).bytes,
                                                                     scratchAlignment(part))));
    }
    return most;
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

  void leave(const ResidentPair &pair, LoadOp load, const StagedTile &tile, AllocOp held) {
    if (held)
      return mark(held, pair.number, pair.writer.part, tile);
    AllocOp buffer = allocate(pair.number, pair.writer.part, tile);
    OpBuilder builder(load->getBlock(), std::next(load->getIterator()));
    StoreOp::create(builder, load.getLoc(), load.getValue(), buffer.getSlice(), localMapOf(tile, load.getMap()),
                    /*streamed=*/false);
  }

  ProgramOp program;
  const Target &target;
};

struct KeepResidentTiles : tilewright::impl::KeepResidentTilesBase<KeepResidentTiles> {
  using KeepResidentTilesBase::KeepResidentTilesBase;

  void runOnOperation() override {
    ProgramOp program = getOperation();
    FailureOr<Target> known = targetOrError(program, target);
    if (failed(known))
      return signalPassFailure();
    for (const ResidentPair &pair : takePairs(program)) {
      if (std::string why = Rewriter(program, *known).keep(pair); !why.empty()) {
        ParallelOp(pair.reader.part).emitError("a tile that two phases read cannot stay in shared memory: ") << why;
        return signalPassFailure();
      }
      ++numResident;
    }
  }
};
} // namespace
