// Decides which parts are pipelined over tiles, and says why others are not.
#include "passes/codegen/cpu/TilePipeline.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

static bool streamsAll(ComputeOp compute) {
  auto stores = compute.getBody().getOps<StoreOp>();
  return !stores.empty() && llvm::all_of(stores, [](StoreOp store) { return store.getStreamed(); });
}

/// Returns true if the slice is a buffer that each tile allocates anew.
static bool isTileBuffer(Value slice, WalkOp walk) {
  auto alloc = slice.getDefiningOp<AllocOp>();
  return alloc && alloc->getParentOp() == walk;
}

/// Returns true if the first nest of the next tile does not access memory that the last nest of this tile stores, nor
/// buffers that the tiles share. It reads only inputs and writes only buffers of its tile.
static bool isApart(ComputeOp first, ProgramOp program, WalkOp walk) {
  int64_t inputs = program.getBody().getNumArguments() - program.getOutputs();
  auto isRead = [&](LoadOp load) {
    auto binding = dyn_cast<BlockArgument>(load.getSlice());
    return !binding || static_cast<int64_t>(binding.getArgNumber()) < inputs;
  };
  auto isOwn = [&](Value slice) { return isTileBuffer(slice, walk); };
  return !program.getInPlace() && llvm::all_of(first.getBody().getOps<LoadOp>(), isRead) &&
         llvm::all_of(first.getAccs(), isOwn) &&
         llvm::all_of(first.getBody().getOps<StoreOp>(), [&](StoreOp store) { return isOwn(store.getSlice()); });
}

/// Returns the bytes of the buffers that each tile allocates anew.
static int64_t tileBufferBytes(WalkOp walk) {
  int64_t low = walk->getParentOfType<ProgramOp>().getBlockBytes(), high = 0;
  for (auto alloc : walk.getBody().getOps<AllocOp>()) {
    int64_t start = alloc.getOffset().value_or(0);
    low = std::min(low, start);
    high = std::max<int64_t>(high, start + alloc.getType().getNumBytes());
  }
  return std::max<int64_t>(high - low, 0);
}

TilePipeline tilewright::pipelineTiles(ProgramOp program, ParallelOp part, VectorShape shape) {
  WalkOp walk = part.getWalk();
  auto computes = llvm::to_vector(walk.getBody().getOps<ComputeOp>());
  int64_t tiles = part.getNumTiles(), workgroups = part.getWorkgroups();
  if (computes.size() < 2 || !streamsAll(computes.back()) || tiles <= workgroups)
    return {};
  ComputeOp first = computes.front(), last = computes.back();
  if (!llvm::all_of(walk.getBody().front(), llvm::IsaPred<AllocOp, SyncOp, ComputeOp>))
    return {{}, {}, "the tile has ops other than nests, syncs and buffers"};
  if (first.getAccs().empty() || !canShareLoops(first, last, shape))
    return {{}, {}, "the first nest of a tile and the last do not visit the same points in the same order"};
  if (!isApart(first, program, walk))
    return {{}, {}, "the first nest of a tile may access memory that the last one stores"};
  if (program.getBlockBytes() + tileBufferBytes(walk) > shape.cacheBytes / 2)
    return {{}, {}, "the buffers of two tiles do not fit into half of the innermost cache"};
  return {first, last, ""};
}
