// Copies that a thread asks for and goes on (cp.async). What they write is neither read nor written by anybody before
// the thread has waited for the group that the copy was committed to; only then the bytes are there, and other threads
// need a barrier on top, as for any write.
#ifndef TILEWRIGHT_SIMULATOR_ASYNCCOPIES_H
#define TILEWRIGHT_SIMULATOR_ASYNCCOPIES_H

#include <cstdint>
#include <vector>

namespace tilewright::simulator {

class Machine;
struct Thread;

/// A copy that has not completed. Bytes that the source does not give are zero.
struct AsyncCopy {
  char *target;
  const char *source;
  uint32_t bytes, sourceBytes;
  uint32_t site;  ///< of its write
  uint32_t group; ///< the one that the next commit closes
};

/// Those of a thread, in the order in which it asked for them.
struct AsyncCopies {
  std::vector<AsyncCopy> open;
  uint32_t groups = 0; ///< committed so far
};

/// Of a block: which pieces of its shared memory a copy still fills, and the site of that copy.
class UnfinishedPieces {
public:
  explicit UnfinishedPieces(uint64_t pieces) : sites(pieces) {}
  bool any() const { return count > 0; }
  /// The site of the copy, or -1.
  int32_t siteOf(uint64_t piece) const { return int32_t(sites[piece]) - 1; }
  void begin(uint64_t piece, uint32_t site) { sites[piece] = site + 1, ++count; }
  void end(uint64_t piece) { sites[piece] = 0, --count; }

private:
  std::vector<uint32_t> sites; ///< plus one
  uint64_t count = 0;
};

void startCopy(Thread &thread, uint32_t readSite, uint32_t writeSite, char *target, char *source, uint32_t bytes,
               uint32_t sourceBytes);
void commitCopies(Thread &thread);
/// Completes all but the last `groups` committed groups.
void waitForCopies(Thread &thread, uint32_t groups);
/// A thread that ends has waited for all it asked for.
void checkNoneIsOpen(Thread &thread);

} // namespace tilewright::simulator

#endif
