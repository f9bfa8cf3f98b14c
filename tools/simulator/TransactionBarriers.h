// Barriers in shared memory that count bytes (mbarrier), and the bulk copies that complete on them (cp.async.bulk). The
// data of a bulk copy is available to a thread that has waited for the phase in which the copy completes, and to all
// other threads after the next barrier of the block. Before that, nobody may access it.
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
  uint32_t bytes, site; ///< number of bytes, and site of the write
};

struct TransactionBarrier {
  const char *address;             ///< null if it has been invalidated
  Moment initialised;              ///< thread and time of the initialisation
  uint32_t count = 0, pending = 0; ///< arrivals of a phase, and arrivals that the current phase lacks
  uint32_t phase = 0;              ///< number of completed phases
  uint64_t expected = 0;           ///< bytes that the current phase expects
  bool fenced = false;             ///< true if a fence makes the initialisation visible to copies
  std::vector<uint32_t> waitedAt;  ///< block barriers before the first wait for each phase
  uint32_t brought = 0, site = 0;  ///< last phase with bytes, counted from 1, and the site of a copy in it
  std::vector<BulkCopy> copies;    ///< copies of the current phase
};

/// The transaction barriers of a block.
class TransactionBarriers {
public:
  bool any() const { return !barriers.empty(); }
  /// Returns true if a bulk copy has written the piece and the thread has not waited for it. Then `site` is the site of
  /// the copy.
  bool isUnreached(const Thread &thread, uint64_t piece, uint32_t &site) const;
  void clear();

  struct Delivery {
    uint32_t barrier, phase, site;
  };
  std::vector<TransactionBarrier> barriers;
  std::unordered_map<uint64_t, Delivery> delivered; ///< last bulk copy to each piece
};

void initBarrier(Thread &thread, uint32_t site, char *address, uint32_t count);
/// Invalidates an mbarrier. Its memory may then be used for something else, such as another mbarrier.
void invalidateBarrier(Thread &thread, uint32_t site, char *address);
/// Makes the mbarriers that the thread has initialised visible to copies.
void fenceBarriers(Thread &thread);
void arriveExpecting(Thread &thread, uint32_t site, char *address, uint32_t bytes);
void startBulkCopy(Thread &thread, uint32_t readSite, uint32_t writeSite, char *target, char *source, uint32_t bytes,
                   char *barrier);
void waitForPhase(Thread &thread, uint32_t site, char *address, uint32_t parity);
/// Reports a fault if the block's last thread ends and nobody has waited for some bulk copy.
void checkAllWereWaitedFor(Thread &thread);

} // namespace tilewright::simulator

#endif
