// A buffer lives from its first use to the first sync after its last one. Positions are those of the ops in the tile's
// body.
#include "passes/program/PartBuffers.h"

#include "dialects/tile/BufferOffsets.h"
#include "dialects/tile/Phases.h"
#include "passes/program/RegisterHandover.h"

#include <map>

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

/// Returns the position after which no unit of the block uses a buffer any more. Units run apart until the next sync,
/// so a buffer lives until there.
static unsigned syncPointAfter(ArrayRef<unsigned> syncPoints, unsigned lastUse, unsigned end) {
  const unsigned *next = llvm::lower_bound(syncPoints, lastUse);
  return next == syncPoints.end() ? end : *next;
}

/// Collects the buffers and their live ranges. Loop nests use buffers from inside their bodies, hence the look-up of
/// the ancestor op.
PartBuffers tilewright::buffersOf(ParallelOp part) {
  Block &tile = part.getWalk().getBody().front();
  DenseMap<Operation *, unsigned> position;
  SmallVector<unsigned> syncPoints;
  for (auto [i, op] : llvm::enumerate(tile)) {
    position[&op] = i;
    if (auto sync = dyn_cast<SyncOp>(op); sync && sync.getScope() >= Scope::block)
      syncPoints.push_back(i);
  }
  PartBuffers buffers;
  buffers.end = position.size();
  buffers.firstSyncPoint = syncPoints.empty() ? buffers.end : syncPoints.front();
  auto add = [&](AllocOp alloc, bool throughout) {
    LiveBuffer range{static_cast<int64_t>(llvm::alignTo(bufferBytes(alloc), kBufferAlignment)), buffers.end, 0};
    for (Operation *user : alloc->getUsers()) {
      Operation *ancestor = tile.findAncestorOpInBlock(*user);
      unsigned at = ancestor ? position.lookup(ancestor) : 0;
      range.first = std::min(range.first, at);
      range.last = std::max(range.last, at);
    }
    range.last = syncPointAfter(syncPoints, range.last, buffers.end);
    if (throughout)
      range.first = 0, range.last = buffers.end;
    buffers.ops.push_back(alloc);
    buffers.ranges.push_back(range);
  };
  for (auto alloc : part.getBody().getOps<AllocOp>())
    add(alloc, /*throughout=*/true);
  for (auto alloc : tile.getOps<AllocOp>())
    if (!staysInRegisters(alloc) && residentTileNumber(alloc) < 0)
      add(alloc, /*throughout=*/false);
  return buffers;
}

ResidentBuffers tilewright::residentBuffersOf(ProgramOp program) {
  std::map<int64_t, std::pair<SmallVector<AllocOp, 2>, LiveBuffer>> tiles;
  for (auto [number, phase] : llvm::enumerate(phasesOf(program)))
    for (ParallelOp part : phase)
      part.walk([&, own = static_cast<unsigned>(number)](AllocOp alloc) {
        if (residentTileNumber(alloc) < 0)
          return;
        int64_t bytes = llvm::alignTo(bufferBytes(alloc), kBufferAlignment);
        auto [tile, isNew] = tiles.try_emplace(residentTileNumber(alloc), SmallVector<AllocOp, 2>(),
                                               LiveBuffer{bytes, own, own});
        tile->second.first.push_back(alloc);
        tile->second.second.last = own;
      });
  ResidentBuffers resident;
  for (auto &[number, tile] : tiles) {
    resident.ops.push_back(tile.first);
    resident.ranges.push_back(tile.second);
  }
  return resident;
}

int64_t tilewright::joinedBufferBytes(const PartBuffers &first, const PartBuffers &second) {
  SmallVector<LiveBuffer> ranges(first.ranges);
  for (LiveBuffer &range : ranges)
    if (range.last == first.end)
      range.last += second.firstSyncPoint;
  for (const LiveBuffer &range : second.ranges)
    ranges.push_back({range.bytes, first.end + range.first, first.end + range.last});
  return placeByBestFit(ranges).end;
}
