// Barriers in shared memory that count bytes (mbarrier), and the bulk copies that complete on them (cp.async.bulk).
// What a bulk copy brings is there for a thread that has waited for the phase in which it arrives, and for all others
// after the next barrier of the block; before that nobody may touch it.
#ifndef TILEWRIGHT_SIMULATOR_TRANSACTIONBARRIERS_H
#define TILEWRIGHT_SIMULATOR_TRANSACTIONBARRIERS_H

#include "tools/simulator/Shadow.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace tilewright::simulator {

struct Thread;

struct BulkCopy {
  char *target;
  const char *source;
  uint32_t bytes, site; ///< of its write
};

struct TransactionBarrier {
  const char *address;             ///< null: it is none any more
  Moment initialised;              ///< when, and by whom
  uint32_t count = 0, pending = 0; ///< arrivals of a phase, and those that the current one lacks
  uint32_t phase = 0;              ///< how many are complete
  uint64_t expected = 0;           ///< bytes, in the current phase
  bool fenced = false;             ///< copies see that it was initialised
  std::vector<uint32_t> waitedAt;  ///< of the phases that some thread has waited for: the barriers of the block before
  uint32_t brought = 0, site = 0;  ///< the last phase, counted from 1, that brought bytes, and the copy that did
  std::vector<BulkCopy> copies;    ///< of the current phase
};

/// Those of a block.
class TransactionBarriers {
public:
  bool any() const { return !barriers.empty(); }
  /// Whether a bulk copy has brought the piece and the thread has not waited for it; the site of the copy then.
  bool isUnreached(const Thread &thread, uint64_t piece, uint32_t &site) const;
  void clear();

  struct Delivery {
    uint32_t barrier, phase, site;
  };
  std::vector<TransactionBarrier> barriers;
  std::unordered_map<uint64_t, Delivery> delivered; ///< by piece
};

void initBarrier(Thread &thread, uint32_t site, char *address, uint32_t count);
/// Its memory may be used for something else, another mbarrier too.
void invalidateBarrier(Thread &thread, uint32_t site, char *address);
/// What the thread initialised is seen by copies from now on.
void fenceBarriers(Thread &thread);
void arriveExpecting(Thread &thread, uint32_t site, char *address, uint32_t bytes);
void startBulkCopy(Thread &thread, uint32_t readSite, uint32_t writeSite, char *target, char *source, uint32_t bytes,
                   char *barrier);
void waitForPhase(Thread &thread, uint32_t site, char *address, uint32_t parity);
/// The last thread of a block that ends leaves no copy that nobody has waited for.
void checkAllWereWaitedFor(Thread &thread);

} // namespace tilewright::simulator

#endif
