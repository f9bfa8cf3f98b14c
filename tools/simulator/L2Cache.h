// The model of the device's L2: fully associative with least-recently-used replacement, in sectors of 32 bytes. It
// writes back, and a write does not read the sector first.
#ifndef TILEWRIGHT_SIMULATOR_L2CACHE_H
#define TILEWRIGHT_SIMULATOR_L2CACHE_H

#include "tools/simulator/Simulator.h"

#include <cstdint>
#include <vector>

namespace tilewright::simulator {

constexpr uint64_t sectorBytes = 32; ///< unit of L2 traffic

/// Adjacent sectors that one access of a warp touches.
struct SectorRun {
  uint32_t first;
  uint16_t count;
  bool reads, writes;
};

/// The accesses of one block in order, one vector for each phase between grid barriers.
using BlockTrace = std::vector<std::vector<SectorRun>>;

class L2Cache {
public:
  explicit L2Cache(uint64_t capacityBytes);

  /// Starts a new kernel. Accesses from here on count for it.
  void beginKernel();
  void access(const SectorRun &run);
  /// Writes back all dirty sectors.
  void flush();

  /// Bytes between the L2 and DRAM. A sector that is written back counts for the kernel that wrote it last.
  struct Traffic {
    uint64_t bytesRead = 0;
    uint64_t bytesWritten = 0;
  };
  std::vector<Traffic> kernels; ///< in the order in which they began

private:
  void touch(uint32_t sector, bool reads, bool writes);
  void unlink(uint32_t slot);
  void pushFront(uint32_t slot);
  void evict();

  struct Entry {
    uint32_t previous, next;
    uint32_t writer; ///< kernel that wrote it last, or `clean`
    bool present;
  };
  static constexpr uint32_t head = 0, clean = ~uint32_t(0);
  std::vector<Entry> entries;  ///< linked list in order of use; sector i is entry i + 1, entry 0 is the head
  uint64_t capacity, used = 0; ///< sectors
};

/// Replays the accesses of a kernel's blocks in the order of the device: the resident blocks take turns, one access of
/// a warp each, and when a block ends, the next one takes its place.
void replay(std::vector<BlockTrace> &traces, uint64_t resident, L2Cache &cache);

} // namespace tilewright::simulator

#endif
