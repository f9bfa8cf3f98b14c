// Shadow memory, which finds races. For every piece of memory, it stores the last writer and the last reader, and the
// barriers that each had passed. Two accesses of different threads are ordered if a barrier of both threads lies
// between them. Unordered accesses race if one of them writes and not both are atomic. A piece without a writer was
// never written.
//
// As in FastTrack (Flanagan and Freund), one writer and one reader are enough. For several unordered readers, it is
// enough to store that there are others, and whether they are in the same warp or block.
#ifndef TILEWRIGHT_SIMULATOR_SHADOW_H
#define TILEWRIGHT_SIMULATOR_SHADOW_H

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace tilewright::simulator {

/// A point in the execution of a thread: the thread, and the number of barriers that it has passed in each scope.
struct Moment {
  uint64_t block;
  uint32_t warp, lane; ///< index of the warp in its block, and of the lane in its warp
  uint32_t gridBarriers, blockBarriers, warpBarriers;
  uint32_t proxyFences;                           ///< number of fence.proxy that the thread has executed
  uint32_t clusterArrivals = 0, clusterWaits = 0; ///< the two halves of barriers of the cluster, for this thread
};

enum class Conflict { none, neverWritten, race };

/// The result of checking an access. For a race, it includes the site of the other access.
struct Finding {
  Conflict conflict = Conflict::none;
  uint16_t otherSite = 0;
  bool otherWrites = false;
};

struct AccessKind {
  bool reads = false, writes = false, atomic = false;
};

/// The shadow of a block's shared memory. Blocks that run one after another on the same host thread share it. The count
/// of barriers continues from block to block, so nothing has to be cleared.
class SharedShadow {
public:
  explicit SharedShadow(uint64_t pieces) : cells(pieces) {}
  /// Checks and records an access. `firstBarrier` is the count of barriers at which the running block began.
  Finding access(uint64_t piece, const Moment &moment, uint16_t site, AccessKind kind, uint32_t firstBarrier);
  /// Checks and records an access by a thread of another block of the cluster, which has rank `rank`. `now` is the
  /// number of barriers that the owner of the memory has passed.
  Finding accessRemotely(uint64_t piece, const Moment &moment, uint32_t rank, uint16_t site, AccessKind kind,
                         uint32_t firstBarrier, uint32_t now);
  /// Records that a bulk copy writes the piece now. TransactionBarriers knows which threads may read it.
  void deliver(uint64_t piece, const Moment &moment, uint16_t site);

  struct LastWrite {
    uint32_t thread, time, fences; ///< thread of the block; barriers it had passed; fences it had executed before
    bool delivered;                ///< true if a bulk copy wrote the piece
  };
  LastWrite lastWrite(uint64_t piece) const {
    const Cell &cell = cells[piece];
    return {cell.writer, cell.writeTime, cell.writeFences, cell.delivered};
  }

private:
  struct Cell {
    uint32_t writeTime = 0, readTime = 0; ///< number of block barriers before the access; 0: never accessed
    uint32_t writeWarpTime = 0, readWarpTime = 0, writeFences = 0;
    uint16_t writer = 0, reader = 0; ///< warp * 32 + lane
    uint16_t writeSite = 0, readSite = 0;
    uint32_t writeArrivals = 0, readArrivals = 0; ///< arrivals at barriers of the cluster before the access
    bool remoteWrite = false, remoteRead = false;
    bool atomicWrite = false, otherLanes = false, otherWarps = false, delivered = false;
  };
  void noteRead(Cell &cell, const Moment &moment, uint16_t site);
  std::vector<Cell> cells;
};

/// The shadow of a global buffer, which blocks on several host threads use at the same time. Writer and reader are one
/// atomic word each. An access changes one of them and then reads the other, so that at least one of two racing
/// accesses sees the race.
class GlobalShadow {
public:
  /// If `written` is true, the content counts as written before the launch.
  GlobalShadow(uint64_t pieces, bool written);
  ~GlobalShadow();
  GlobalShadow(const GlobalShadow &) = delete;
  GlobalShadow &operator=(const GlobalShadow &) = delete;

  bool valid() const { return cells; }
  Finding access(uint64_t piece, const Moment &moment, uint16_t site, AccessKind kind);
  uint64_t neverWritten() const;

private:
  struct Cell {
    std::atomic<uint64_t> writer, reader;
    std::atomic<uint16_t> writeSite, readSite;
  };
  void noteRead(Cell &cell, uint64_t word, uint16_t site);
  Cell *cells = nullptr; ///< mapped memory, of which unused pages take no space
  uint64_t pieces;
  bool written;
};

} // namespace tilewright::simulator

#endif
