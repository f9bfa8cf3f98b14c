// Simulates caches with least-recently-used replacement, line by line, and counts the lines that a stream of accesses
// moves between levels. It validates predictions of movement on machines without hardware counters.
#ifndef TILEWRIGHT_CORE_CACHESIMULATOR_H
#define TILEWRIGHT_CORE_CACHESIMULATOR_H

#include "core/Core.h"

namespace tilewright {

struct CacheShape {
  int64_t capacityBytes, lineBytes;
  int64_t ways; ///< associativity; 0 if fully associative
};

/// Counts of lines at one level.
struct CacheTraffic {
  int64_t hits = 0, fills = 0; ///< lines found, and lines fetched from the next level
  int64_t writeBacks = 0;      ///< dirty lines written to the next level
};

/// A hierarchy of caches, innermost level first. All levels are write-back and write-allocate. A level serves the
/// misses of the level before it and receives the lines that it evicts. The line size never decreases from level to
/// level.
class TILEWRIGHT_CORE CacheSimulator {
public:
  explicit CacheSimulator(const std::vector<CacheShape> &levels);
  CacheSimulator(const CacheSimulator &) = delete;
  ~CacheSimulator();

  void access(uint64_t address, uint64_t bytes, bool isStore);
  /// Replays records in the format that `tile-trace-accesses` writes.
  void replay(const uint64_t *records, size_t count);
  /// Writes all dirty lines back and empties the caches.
  void flush();
  std::vector<CacheTraffic> traffic() const;

private:
  class Level;
  void touch(size_t level, uint64_t line, bool isStore);

  std::vector<std::unique_ptr<Level>> levels;
};

} // namespace tilewright

#endif
