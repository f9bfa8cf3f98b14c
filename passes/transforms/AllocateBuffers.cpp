// Places buffers by best fit over their live ranges (Welder 3.1 does the same for tiles). Largest first: on these
// handfuls of buffers that is as good as optimal and easy to predict.
#include "dialects/tile/BufferPlaces.h"
#include "passes/Passes.h"
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

struct Buffer {
  AllocOp op;
  size_t number; ///< in program order, so that placing is deterministic
  int64_t bytes;
  unsigned first, last; ///< positions in the body of the part, inclusive
  int64_t offset = 0;
  bool overlaps(const Buffer &other) const { return first <= other.last && other.first <= last; }
};

/// Where the last use of a buffer is over for all units of the block: they may still be at it until they meet.
unsigned meetingAfter(ArrayRef<unsigned> meetings, unsigned lastUse, unsigned end) {
  const unsigned *next = llvm::lower_bound(meetings, lastUse);
  return next == meetings.end() ? end : *next;
}

/// Live ranges in the ops of one part. Loop nests use buffers from inside their bodies, hence the ancestor look-up.
SmallVector<Buffer> collectBuffers(ParallelOp part) {
  Block &tile = part.getWalk().getBody().front();
  DenseMap<Operation *, unsigned> position;
  SmallVector<unsigned> meetings;
  for (auto [i, op] : llvm::enumerate(tile)) {
    position[&op] = i;
    if (auto sync = dyn_cast<SyncOp>(op); sync && sync.getScope() >= Scope::block)
      meetings.push_back(i);
  }
  unsigned end = position.size();
  SmallVector<Buffer> buffers;
  auto add = [&](AllocOp alloc, bool throughout) {
    Buffer buffer{alloc, buffers.size(), static_cast<int64_t>(llvm::alignTo(bufferBytes(alloc), kAlignment)), end, 0};
    for (Operation *user : alloc->getUsers()) {
      Operation *ancestor = tile.findAncestorOpInBlock(*user);
      unsigned at = ancestor ? position.lookup(ancestor) : 0;
      buffer.first = std::min(buffer.first, at);
      buffer.last = std::max(buffer.last, at);
    }
    buffer.last = meetingAfter(meetings, buffer.last, end);
    if (throughout)
      buffer.first = 0, buffer.last = end;
    buffers.push_back(buffer);
  };
  for (auto alloc : part.getBody().getOps<AllocOp>())
    add(alloc, /*throughout=*/true);
  for (auto alloc : tile.getOps<AllocOp>())
    if (!staysInRegisters(alloc) && keptNumber(alloc) < 0)
      add(alloc, /*throughout=*/false);
  return buffers;
}

/// The lowest gap between already placed buffers, live at the same time, that is large enough with least waste.
int64_t bestFit(const Buffer &buffer, ArrayRef<Buffer> placed) {
  SmallVector<const Buffer *> live;
  for (const Buffer &other : placed)
    if (buffer.overlaps(other))
      live.push_back(&other);
  llvm::sort(live, [](const Buffer *a, const Buffer *b) { return a->offset < b->offset; });
  int64_t end = 0, best = -1, bestGap = 0;
  for (const Buffer *other : live) {
    int64_t gap = other->offset - end;
    if (gap >= buffer.bytes && (best < 0 || gap < bestGap)) {
      best = end;
      bestGap = gap;
    }
    end = std::max(end, other->offset + other->bytes);
  }
  return best >= 0 ? best : end;
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
      SmallVector<Buffer> buffers = collectBuffers(part);
      llvm::sort(buffers, [](const Buffer &a, const Buffer &b) {
        return std::make_tuple(-a.bytes, a.first, a.number) < std::make_tuple(-b.bytes, b.first, b.number);
      });
      int64_t total = 0, high = 0;
      for (size_t i = 0; i < buffers.size(); ++i) {
        buffers[i].offset = bestFit(buffers[i], ArrayRef(buffers).take_front(i));
        buffers[i].op.setOffset(first + buffers[i].offset);
        total += buffers[i].bytes;
        high = std::max(high, buffers[i].offset + buffers[i].bytes);
      }
      bytes += high;
      shared += total - high;
    }
  }
};
} // namespace
