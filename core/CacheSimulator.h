// Caches with least-recently-used replacement, line by line: what a stream of accesses moves between levels. For
// judging predictions of movement, which a machine's own counters can only do where it has them.
#ifndef TILEWRIGHT_CORE_CACHESIMULATOR_H
#define TILEWRIGHT_CORE_CACHESIMULATOR_H

#include "core/Core.h"

namespace tilewright {

struct CacheShape {
  int64_t capacityBytes, lineBytes;
  int64_t ways; ///< 0: fully associative
};

/// Lines of one level.
struct CacheTraffic {
  int64_t hits = 0, fills = 0; ///< found, and fetched from the level below
  int64_t writeBacks = 0;      ///< dirty lines handed to the level below
};

/// Levels from the innermost; all write back, and fetch what they write. A level is asked for the lines that the one
/// above it misses, and takes in what that evicts. Lines grow from level to level, if at all.
class TILEWRIGHT_CORE CacheSimulator {
public:
  explicit CacheSimulator(const std::vector<CacheShape> &levels);
  CacheSimulator(const CacheSimulator &) = delete;
  ~CacheSimulator();

  void access(uint64_t address, uint64_t bytes, bool isStore);
  /// Records as `tile-trace-accesses` writes them.
  void replay(const uint64_t *records, size_t count);
  /// Writes all dirty lines back; nothing stays cached.
  void flush();
  std::vector<CacheTraffic> traffic() const;

private:
  class Level;
  void touch(size_t level, uint64_t line, bool isStore);

  std::vector<std::unique_ptr<Level>> levels;
};

} // namespace tilewright

#endif
