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
  explicit L2Cache(uint64_t capacityBytes);

  /// Accesses from here on are of another kernel.
  void beginKernel();
  void access(const SectorRun &run);
  /// Writes back what is dirty.
  void flush();

  /// Past the cache.
  struct Traffic {
    uint64_t bytesRead = 0;
    uint64_t bytesWritten = 0; ///< of what the kernel wrote last
  };
  std::vector<Traffic> kernels; ///< in the order in which they began

private:
  void touch(uint32_t sector, bool reads, bool writes);
  void unlink(uint32_t place);
  void pushFront(uint32_t place);
  void evict();

  struct Entry {
    uint32_t previous, next;
    uint32_t writer; ///< the kernel that wrote it last, or `clean`
    bool present;
  };
  static constexpr uint32_t head = 0, clean = ~uint32_t(0);
  std::vector<Entry> entries; ///< of a sector behind the head of the list; as many as were touched
  uint64_t capacity, used = 0;
};

/// Plays a kernel's blocks against the cache as the device would: as many at once as are resident, a warp access each
/// in turn, the next block where one ends.
void replay(std::vector<BlockTrace> &traces, uint64_t resident, L2Cache &cache);

} // namespace tilewright::simulator

#endif
