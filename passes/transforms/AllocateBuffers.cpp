// Places buffers by best fit over their live ranges (analysis/BestFit.h).
#include "dialects/tile/BufferPlaces.h"
#include "passes/Passes.h"
#include "passes/analysis/BestFit.h"
#include "passes/analysis/RegisterHandover.h"

#include <map>

namespace tilewright {
#define GEN_PASS_DEF_ALLOCATEBUFFERS
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
constexpr int64_t kAlignment = 64;

/// The buffers of a part, in program order, with the positions in its body where they are live.
struct PartBuffers {
  SmallVector<AllocOp> ops;
  SmallVector<LiveBuffer> ranges;
};

/// Where the last use of a buffer is over for all units of the block: they may still be at it until they meet.
unsigned meetingAfter(ArrayRef<unsigned> meetings, unsigned lastUse, unsigned end) {
  const unsigned *next = llvm::lower_bound(meetings, lastUse);
  return next == meetings.end() ? end : *next;
}

/// Live ranges in the ops of one part. Loop nests use buffers from inside their bodies, hence the ancestor look-up.
PartBuffers collectBuffers(ParallelOp part) {
  Block &tile = part.getWalk().getBody().front();
  DenseMap<Operation *, unsigned> position;
  SmallVector<unsigned> meetings;
  for (auto [i, op] : llvm::enumerate(tile)) {
    position[&op] = i;
    if (auto sync = dyn_cast<SyncOp>(op); sync && sync.getScope() >= Scope::block)
      meetings.push_back(i);
  }
  unsigned end = position.size();
  PartBuffers buffers;
  auto add = [&](AllocOp alloc, bool throughout) {
    LiveBuffer range{static_cast<int64_t>(llvm::alignTo(bufferBytes(alloc), kAlignment)), end, 0};
    for (Operation *user : alloc->getUsers()) {
      Operation *ancestor = tile.findAncestorOpInBlock(*user);
      unsigned at = ancestor ? position.lookup(ancestor) : 0;
      range.first = std::min(range.first, at);
      range.last = std::max(range.last, at);
    }
    range.last = meetingAfter(meetings, range.last, end);
    if (throughout)
      range.first = 0, range.last = end;
    buffers.ops.push_back(alloc);
    buffers.ranges.push_back(range);
  };
  for (auto alloc : part.getBody().getOps<AllocOp>())
    add(alloc, /*throughout=*/true);
  for (auto alloc : tile.getOps<AllocOp>())
    if (!staysInRegisters(alloc) && keptNumber(alloc) < 0)
      add(alloc, /*throughout=*/false);
  return buffers;
}

/// What is kept from phase to phase lies in front of all else. Returns where that ends.
int64_t placeKept(ProgramOp program) {
  std::map<int64_t, SmallVector<AllocOp>> kept;
  program.walk([&](AllocOp alloc) {
    if (keptNumber(alloc) >= 0)
      kept[keptNumber(alloc)].push_back(alloc);
  });
  int64_t end = 0;
  for (auto &[number, buffers] : kept) {
    for (AllocOp buffer : buffers)
      buffer.setOffset(end);
    end += llvm::alignTo(bufferBytes(buffers.front()), kAlignment);
  }
  return end;
}

struct AllocateBuffers : tilewright::impl::AllocateBuffersBase<AllocateBuffers> {
  void runOnOperation() override {
    int64_t first = placeKept(getOperation());
    for (auto part : getOperation().getBody().getOps<ParallelOp>()) {
      PartBuffers buffers = collectBuffers(part);
      BestFit fit = placeByBestFit(buffers.ranges);
      int64_t total = 0;
      for (auto [op, range, offset] : llvm::zip(buffers.ops, buffers.ranges, fit.offsets)) {
        op.setOffset(first + offset);
        total += range.bytes;
      }
      bytes += fit.end;
      shared += total - fit.end;
    }
  }
};
} // namespace
