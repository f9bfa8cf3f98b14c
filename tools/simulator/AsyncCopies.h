// Asynchronous copies (cp.async), which a thread starts before it continues. Nobody may read or write the destination
// until the thread has waited for the group to which the copy was committed. Only then are the bytes there. Other
// threads also need a barrier, as for any write.
#ifndef TILEWRIGHT_SIMULATOR_ASYNCCOPIES_H
#define TILEWRIGHT_SIMULATOR_ASYNCCOPIES_H

#include <cstdint>
#include <vector>

namespace tilewright::simulator {

class Machine;
struct Thread;

/// A copy in flight. If the source has fewer bytes, zeros fill the rest.
struct AsyncCopy {
  char *target;
  const char *source;
  uint32_t bytes, sourceBytes;
  uint32_t site;  ///< site of its write
  uint32_t group; ///< group to which the next commit adds it
};

/// The copies of a thread, in the order in which it started them.
struct AsyncCopies {
  std::vector<AsyncCopy> open;
  uint32_t groups = 0; ///< groups committed so far
};

/// The pieces of a block's shared memory that copies in flight will fill, with the sites of those copies.
class UnfinishedPieces {
public:
  explicit UnfinishedPieces(uint64_t pieces) : sites(pieces) {}
  bool any() const { return count > 0; }
  /// Returns the site of the copy that fills a piece, or -1.
  int32_t siteOf(uint64_t piece) const { return int32_t(sites[piece]) - 1; }
  void begin(uint64_t piece, uint32_t site) { sites[piece] = site + 1, ++count; }
  void end(uint64_t piece) { sites[piece] = 0, --count; }

private:
  std::vector<uint32_t> sites; ///< site plus one for each piece; 0: no copy
  uint64_t count = 0;
};

void startCopy(Thread &thread, uint32_t readSite, uint32_t writeSite, char *target, char *source, uint32_t bytes,
               uint32_t sourceBytes);
void commitCopies(Thread &thread);
/// Completes all but the last `groups` committed groups.
void waitForCopies(Thread &thread, uint32_t groups);
/// Reports a fault if a thread ends without having waited for all of its copies.
void checkNoneIsOpen(Thread &thread);

} // namespace tilewright::simulator

#endif
