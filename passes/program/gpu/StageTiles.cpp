// Implements staging of tiles. In FusionStitching (4.1) the ops of a kernel run in schedules of their own, as long as
// they exchange data through shared memory. Here the movement of a tile is such an op: threads copy contiguous memory
// in whole vectors, independently of the rows that they compute. StagedTiles decides which tiles; this pass carries it
// out.
#include "dialects/tile/BufferOffsets.h"
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/program/Slices.h"
#include "passes/program/gpu/ClusterAttr.h"
#include "passes/program/gpu/PartWork.h"
#include "passes/program/gpu/StagedTiles.h"
#include "passes/program/gpu/TileCopy.h"
#include "passes/target/TargetOrError.h"

#include "mlir/IR/Remarks.h"

namespace tilewright {
#define GEN_PASS_DEF_STAGETILES
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
class Rewriter {
public:
  explicit Rewriter(ParallelOp part) : part(part), walk(part.getWalk().getBody().front()), builder(part.getContext()) {}

  /// Stages the tiles that fit, of which there is at least one.
  void stage(ArrayRef<StagedTile> tiles) {
    SmallVector<Value> buffers; // null if a tile does not fit, because tiles refer to each other by index
    bool reads = false, writes = false;
    for (const StagedTile &tile : tiles) {
      if (!tile.fits) {
        buffers.push_back(Value());
        continue;
      }
      buffers.push_back(tile.inPlaceOf >= 0 ? buffers[tile.inPlaceOf] : allocate(tile));
      redirect(tile, buffers.back());
    }
    Value lastInBlock = *llvm::find_if(buffers, [](Value buffer) { return buffer != Value(); });
    builder.setInsertionPointAfter(lastInBlock.getDefiningOp());
    for (auto [tile, buffer] : llvm::zip(tiles, buffers))
      if (tile.fits && !tile.isOutput && tile.cluster == 1) {
        copy(tile, tile.slice, buffer);
        reads = true;
      }
    shareCommon(tiles, buffers);
    if (reads)
      SyncOp::create(builder, part.getLoc(), Scope::block);
    builder.setInsertionPointToEnd(&walk);
    for (auto [tile, buffer] : llvm::zip(tiles, buffers))
      if (tile.fits && tile.isOutput) {
        if (!std::exchange(writes, true))
          SyncOp::create(builder, part.getLoc(), Scope::block);
        copy(tile, buffer, tile.slice);
      }
  }

private:
  /// Shares the copies of common inputs between two cluster barriers. The first one ensures that all blocks of the
  /// cluster have started; the second one, placed as late as possible, that all have written.
  void shareCommon(ArrayRef<StagedTile> tiles, ArrayRef<Value> buffers) {
    llvm::SmallPtrSet<Value, 4> common;
    for (auto [tile, buffer] : llvm::zip(tiles, buffers)) {
      if (!tile.fits || tile.cluster == 1)
        continue;
      if (common.empty())
        SyncOp::create(builder, part.getLoc(), Scope::cluster);
      common.insert(buffer);
      copy(tile, tile.slice, buffer)->setAttr(kClusterAttr, part->getAttr(kClusterAttr));
    }
    if (common.empty())
      return;
    for (Operation &op : llvm::make_range(builder.getInsertionPoint(), walk.end())) {
      auto compute = dyn_cast<ComputeOp>(op);
      if (!compute || llvm::none_of(compute.getBodyBlock().getOps<LoadOp>(),
                                    [&](LoadOp load) { return common.contains(load.getSlice()); }))
        continue;
      OpBuilder before(compute);
      SyncOp::create(before, part.getLoc(), Scope::cluster);
      return;
    }
    llvm_unreachable("some nest reads the copied tile");
  }

  Value allocate(const StagedTile &tile) {
    builder.setInsertionPointToStart(&walk);
    Type element = cast<SliceType>(tile.slice.getType()).getElementType();
    auto alloc = AllocOp::create(builder, part.getLoc(),
                                 SliceType::get(part.getContext(), tile.sizes, element, Space::block), IntegerAttr());
    alloc->setAttr(kAlignedAsAttr, AffineMapAttr::get(startOf(tile, part)));
    if (Attribute resident = tile.held ? tile.held.getDefiningOp()->getAttr(kResidentTileAttr) : Attribute())
      alloc->setAttr(kResidentTileAttr, resident);
    return alloc;
  }

  void redirect(const StagedTile &tile, Value buffer) {
    if (Value held = tile.held) {
      for (Operation *user : llvm::make_early_inc_range(held.getUsers()))
        if (isa<StoreOp>(user))
          user->erase();
      held.replaceAllUsesWith(buffer);
      held.getDefiningOp()->erase();
    }
    part.walk([&](LoadOp load) {
      if (load.getSlice() == tile.slice) {
        load.setMap(localMapOf(tile, load.getMap()));
        load.getSliceMutable().assign(buffer);
      }
    });
    part.walk([&](StoreOp store) {
      if (store.getSlice() == tile.slice) {
        store.setMap(localMapOf(tile, store.getMap()));
        store.getSliceMutable().assign(buffer);
        store.setStreamed(false);
        // Another result at this point may still read the element that the store overwrites.
        if (tile.inPlaceOf >= 0)
          store->moveBefore(store->getBlock()->getTerminator());
      }
    });
  }

  ComputeOp copy(const StagedTile &tile, Value source, Value target) {
    SmallVector<Value> offsets;
    SmallVector<int64_t> dims;
    for (auto [dim, grid] : llvm::enumerate(tile.gridDims))
      if (grid >= 0) {
        dims.push_back(dim);
        offsets.push_back(walk.getArgument(grid));
      }
    return createTileCopy(builder, part.getLoc(), source, target, offsets, dims);
  }

  ParallelOp part;
  Block &walk;
  OpBuilder builder;
};

struct StageTiles : tilewright::impl::StageTilesBase<StageTiles> {
  using StageTilesBase::StageTilesBase;

  void runOnOperation() override {
    ProgramOp program = getOperation();
    FailureOr<Target> known = targetOrError(program, target);
    if (failed(known))
      return signalPassFailure();
    if (!known->traits.threadBlocks)
      return;
    int64_t threads = threadsOf(program);
    for (auto part : program.getBody().getOps<ParallelOp>()) {
      SmallVector<StagedTile> tiles = chooseStagedTiles(part, threads, *known);
      if (failed(checkStated(part, tiles)))
        return signalPassFailure();
      part->removeAttr(kAccessesAttr);
      for (const StagedTile &tile : tiles)
        if (!tile.fits)
          decline(part, tile);
      int64_t fitting = llvm::count_if(tiles, [](const StagedTile &tile) { return tile.fits; });
      numStaged += fitting;
      if (fitting > 0)
        Rewriter(part).stage(tiles);
      bool isShared = llvm::any_of(tiles, [](const StagedTile &tile) { return tile.fits && tile.cluster > 1; });
      if (clusterOf(part) > 1 && !isShared) {
        part.emitError("clusters of ") << clusterOf(part) << " blocks have nothing to share: no input that all blocks "
                                       << "read is copied to shared memory as a whole";
        return signalPassFailure();
      }
    }
  }

  /// Checks that all tiles are copied as a whole for which the plan states it.
  LogicalResult checkStated(ParallelOp part, ArrayRef<StagedTile> tiles) {
    for (BlockArgument binding : part->getBlock()->getArguments()) {
      if (statedAccess(part, binding) != Access::whole)
        continue;
      auto tile = llvm::find_if(tiles, [&](const StagedTile &tile) { return tile.slice == binding; });
      if (tile == tiles.end())
        return part.emitError("the tile of binding ")
               << binding.getArgNumber() << " cannot be copied as a whole: that takes nests outside of loops and "
               << "contractions that access a box of it, in runs of whole sectors, and never both read and write it";
      if (!tile->fits)
        return part.emitError("the tile of binding ")
               << binding.getArgNumber() << " cannot be copied as a whole: a block has no room for "
               << tile->bytes << " bytes more";
    }
    return success();
  }

  void decline(ParallelOp part, const StagedTile &tile) {
    std::string text;
    llvm::raw_string_ostream os(text);
    tile.print(os);
    remark::missed(part.getLoc(), remark::RemarkOpts::name("direct").category("tile-stage-tiles"))
        << text << ": a block has no room for it";
    ++numDeclined;
  }
};
} // namespace
