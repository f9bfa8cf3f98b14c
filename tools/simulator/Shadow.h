// What is remembered of every piece of memory: who wrote and who read it last, and at which point between barriers. Two
// accesses of different threads are ordered if a barrier that both threads take part in lies between; else, when one of
// them writes and not both are atomic, they race. A piece without a writer was never written.
//
// As in FastTrack (Flanagan and Freund), one writer and one reader are enough: of several unordered readers only that
// there were others, and how far from each other, matters.
#ifndef TILEWRIGHT_SIMULATOR_SHADOW_H
#define TILEWRIGHT_SIMULATOR_SHADOW_H

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace tilewright::simulator {

/// A thread at a moment. Numbers count the barriers that it has passed, per scope.
struct Moment {
  uint64_t block;
  uint32_t warp, lane; ///< the warp within its block
  uint32_t gridBarriers, blockBarriers, warpBarriers;
  uint32_t proxyFences;                           ///< that the thread has done
  uint32_t clusterArrivals = 0, clusterWaits = 0; ///< of the thread; a barrier of the cluster has two halves
};

enum class Conflict { none, neverWritten, race };

/// What an access met; for a race, the site of the other access.
struct Finding {
  Conflict conflict = Conflict::none;
  uint16_t otherSite = 0;
  bool otherWrites = false;
};

struct AccessKind {
  bool reads = false, writes = false, atomic = false;
};

/// Shadow of a block's shared memory. Blocks that run one after another on one host thread share it: their barriers are
/// counted on, so nothing has to be cleared.
class SharedShadow {
public:
  explicit SharedShadow(uint64_t pieces) : cells(pieces) {}
  /// `firstBarrier`: the count with which the running block began.
  Finding access(uint64_t piece, const Moment &moment, uint16_t site, AccessKind kind, uint32_t firstBarrier);
  /// By a thread of another block of the cluster, which has that rank. `now`: barriers that the owner has passed.
  Finding accessRemotely(uint64_t piece, const Moment &moment, uint32_t rank, uint16_t site, AccessKind kind,
                         uint32_t firstBarrier, uint32_t now);
  /// The piece is written now, by none of the threads: who may read it is known elsewhere.
  void deliver(uint64_t piece, const Moment &moment, uint16_t site);

  struct LastWrite {
    uint32_t thread, time, fences; ///< of the block; block barriers; fences that the thread had done before
    bool delivered;
  };
  LastWrite lastWrite(uint64_t piece) const {
    const Cell &cell = cells[piece];
    return {cell.writer, cell.writeTime, cell.writeFences, cell.delivered};
  }

private:
  struct Cell {
    uint32_t writeTime = 0, readTime = 0; ///< block barriers; 0: never
    uint32_t writeWarpTime = 0, readWarpTime = 0, writeFences = 0;
    uint16_t writer = 0, reader = 0; ///< warp * 32 + lane
    uint16_t writeSite = 0, readSite = 0;
    uint32_t writeArrivals = 0, readArrivals = 0; ///< at barriers of the cluster, before the access
    bool remoteWrite = false, remoteRead = false;
    bool atomicWrite = false, otherLanes = false, otherWarps = false, delivered = false;
  };
  void noteRead(Cell &cell, const Moment &moment, uint16_t site);
  std::vector<Cell> cells;
};

/// Shadow of a global buffer, which blocks on several host threads use at the same time. Writer and reader are one word
/// each, and whoever changes one then looks at the other, so that of two racing accesses one sees the race.
class GlobalShadow {
public:
  /// `written`: the content counts as written before the launch.
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
  Cell *cells = nullptr; ///< zero pages until they are used
  uint64_t pieces;
  bool written;
};

} // namespace tilewright::simulator

#endif
