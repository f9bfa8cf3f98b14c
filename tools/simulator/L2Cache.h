// The device's L2: fully associative, least recently used, in sectors; write back, and a write does not read first.
#ifndef TILEWRIGHT_SIMULATOR_L2CACHE_H
#define TILEWRIGHT_SIMULATOR_L2CACHE_H

#include "tools/simulator/Simulator.h"

#include <cstdint>
#include <vector>

namespace tilewright::simulator {

constexpr uint64_t sectorBytes = 32;

/// Adjacent sectors that one warp access touched.
struct SectorRun {
  uint32_t first;
  uint16_t count;
  bool reads, writes;
};

/// One block's accesses in order, cut at grid barriers.
using BlockTrace = std::vector<std::vector<SectorRun>>;

class L2Cache {
public:
  /// Sectors are numbered from 0 to `sectors`.
  L2Cache(uint64_t capacityBytes, uint32_t sectors);

  void access(const SectorRun &run);
  /// Writes back what is dirty.
  void flush();

  uint64_t bytesRead = 0, bytesWritten = 0;

private:
  void touch(uint32_t sector, bool reads, bool writes);
  void unlink(uint32_t sector);
  void pushFront(uint32_t sector);
  void evict();

  struct Entry {
    uint32_t previous, next;
    bool present, dirty;
  };
  std::vector<Entry> entries; ///< the last one is the head of the list
  uint32_t head;
  uint64_t capacity, used = 0;
};

/// Plays the blocks against the cache as the device would: as many at once as are resident, a warp access each in turn,
/// the next block where one ends.
void replay(std::vector<BlockTrace> &traces, uint64_t resident, L2Cache &cache);

} // namespace tilewright::simulator

#endif
