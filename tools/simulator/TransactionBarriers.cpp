// A bulk copy moves its bytes when its phase completes. Until then, its destination counts as unfinished, so that
// earlier accesses are found.
#include "tools/simulator/TransactionBarriers.h"
#include "tools/simulator/Machine.h"

#include <cstring>

using namespace tilewright::simulator;

namespace {
constexpr uint32_t barrierBytes = 8; ///< size of an mbarrier
/// Number of times that a thread yields before its wait counts as endless. Each time it yields, every other thread runs
/// until it waits.
constexpr uint32_t mostTurns = 1 << 14;

Machine &machineOf(const Thread &thread) { return *thread.block->worker->machine; }

bool isOrdered(const Moment &before, const Moment &now) {
  if (before.blockBarriers != now.blockBarriers)
    return true;
  return before.warp == now.warp && (before.lane == now.lane || before.warpBarriers != now.warpBarriers);
}

TransactionBarrier &find(Thread &thread, uint32_t site, const char *address) {
  for (TransactionBarrier &barrier : thread.block->transactions.barriers)
    if (barrier.address == address) {
      if (!isOrdered(barrier.initialised, momentOf(thread)))
        machineOf(thread).fail(thread, "race",
                               "another thread initialises the mbarrier with no barrier between the two", site);
      return barrier;
    }
  machineOf(thread).fail(thread, "never-written", "no mbarrier was initialised here", site);
}

uint64_t bytesOf(const TransactionBarrier &barrier) {
  uint64_t bytes = 0;
  for (const BulkCopy &copy : barrier.copies)
    bytes += copy.bytes;
  return bytes;
}

/// Completes a bulk copy. Its bytes count as written by no thread.
void deliver(Thread &thread, TransactionBarrier &barrier, const BulkCopy &copy) {
  Block &block = *thread.block;
  std::memcpy(copy.target, copy.source, copy.bytes);
  uint32_t granule = machineOf(thread).granule;
  uint32_t number = &barrier - block.transactions.barriers.data();
  for (uint32_t byte = 0; byte < copy.bytes; byte += granule) {
    uint64_t piece = (copy.target + byte - block.shared) / granule;
    block.unfinished->end(piece);
    block.shadow->deliver(piece, momentOf(thread), copy.site);
    block.transactions.delivered[piece] = {number, barrier.phase + 1, copy.site};
  }
}

/// Completes the current phase if all threads have arrived and the copies have as many bytes as expected.
void completeIfDue(Thread &thread, TransactionBarrier &barrier) {
  if (barrier.pending > 0 || barrier.expected != bytesOf(barrier))
    return;
  for (const BulkCopy &copy : barrier.copies) {
    deliver(thread, barrier, copy);
    barrier.brought = barrier.phase + 1;
    barrier.site = copy.site;
  }
  barrier.copies.clear();
  barrier.expected = 0;
  barrier.pending = barrier.count;
  ++barrier.phase;
}
} // namespace

bool TransactionBarriers::isUnreached(const Thread &thread, uint64_t piece, uint32_t &site) const {
  auto found = delivered.find(piece);
  if (found == delivered.end())
    return false;
  const Delivery &delivery = found->second;
  site = delivery.site;
  if (delivery.barrier < thread.reached.size() && thread.reached[delivery.barrier] >= delivery.phase)
    return false;
  const std::vector<uint32_t> &waitedAt = barriers[delivery.barrier].waitedAt;
  return waitedAt.size() < delivery.phase || waitedAt[delivery.phase - 1] >= thread.block->barriers;
}

void TransactionBarriers::clear() {
  barriers.clear();
  delivered.clear();
}

void tilewright::simulator::initBarrier(Thread &thread, uint32_t site, char *address, uint32_t count) {
  accessMemory(thread, site, address, barrierBytes);
  std::vector<TransactionBarrier> &barriers = thread.block->transactions.barriers;
  for (const TransactionBarrier &barrier : barriers)
    if (barrier.address == address)
      machineOf(thread).fail(thread, "barrier", "an mbarrier is initialised a second time", site);
  if (count == 0)
    machineOf(thread).fail(thread, "barrier", "an mbarrier is initialised with an arrival count of zero", site);
  TransactionBarrier barrier;
  barrier.address = address;
  barrier.initialised = momentOf(thread);
  barrier.count = barrier.pending = count;
  barriers.push_back(std::move(barrier));
}

void tilewright::simulator::invalidateBarrier(Thread &thread, uint32_t site, char *address) {
  accessMemory(thread, site, address, barrierBytes);
  TransactionBarrier &barrier = find(thread, site, address);
  if (barrier.pending != barrier.count || !barrier.copies.empty())
    machineOf(thread).fail(thread, "unfinished", "an mbarrier is invalidated in the middle of a phase", site);
  barrier.address = nullptr;
}

void tilewright::simulator::fenceBarriers(Thread &thread) {
  for (TransactionBarrier &barrier : thread.block->transactions.barriers)
    barrier.fenced |= isOrdered(barrier.initialised, momentOf(thread));
}

void tilewright::simulator::arriveExpecting(Thread &thread, uint32_t site, char *address, uint32_t bytes) {
  accessMemory(thread, site, address, barrierBytes);
  TransactionBarrier &barrier = find(thread, site, address);
  if (barrier.pending == 0)
    machineOf(thread).fail(thread, "barrier",
                           "more threads arrive than the " + std::to_string(barrier.count) + " of a phase", site);
  barrier.expected += bytes;
  --barrier.pending;
  completeIfDue(thread, barrier);
}

void tilewright::simulator::startBulkCopy(Thread &thread, uint32_t readSite, uint32_t writeSite, char *target,
                                          char *source, uint32_t bytes, char *address) {
  Machine &machine = machineOf(thread);
  accessMemory(thread, readSite, source, bytes);
  checkMemory(thread, writeSite, target, bytes);
  TransactionBarrier &barrier = find(thread, writeSite, address);
  if (!barrier.fenced)
    machine.fail(thread, "unfenced", "no fence lies between the initialisation of the mbarrier and this copy",
                 writeSite);
  for (uint32_t byte = 0; byte < bytes; byte += machine.granule)
    thread.block->unfinished->begin((target + byte - thread.block->shared) / machine.granule, writeSite);
  barrier.copies.push_back({target, source, bytes, writeSite});
  completeIfDue(thread, barrier);
}

void tilewright::simulator::waitForPhase(Thread &thread, uint32_t site, char *address, uint32_t parity) {
  accessMemory(thread, site, address, barrierBytes);
  for (uint32_t turn = 0; turn < mostTurns; ++turn) {
    TransactionBarrier &barrier = find(thread, site, address);
    if ((barrier.phase & 1) != (parity & 1)) {
      uint32_t number = &barrier - thread.block->transactions.barriers.data();
      if (thread.reached.size() <= number)
        thread.reached.resize(number + 1);
      thread.reached[number] = barrier.phase;
      barrier.waitedAt.resize(std::max<size_t>(barrier.waitedAt.size(), barrier.phase), thread.block->barriers);
      return;
    }
    machineOf(thread).giveWay(thread);
  }
  const TransactionBarrier &barrier = find(thread, site, address);
  machineOf(thread).fail(thread, "barrier",
                         "a phase of the mbarrier never completes: " + std::to_string(barrier.count - barrier.pending) +
                             " of " + std::to_string(barrier.count) + " have arrived, " +
                             std::to_string(barrier.expected) + " bytes are expected and copies bring " +
                             std::to_string(bytesOf(barrier)),
                         site);
}

void tilewright::simulator::checkAllWereWaitedFor(Thread &thread) {
  if (thread.block->live > 1)
    return;
  for (const TransactionBarrier &barrier : thread.block->transactions.barriers)
    if (!barrier.copies.empty() || barrier.brought > barrier.waitedAt.size())
      machineOf(thread).fail(thread, "unfinished", "the block ends, and nobody has waited for this copy",
                             barrier.copies.empty() ? barrier.site : barrier.copies.front().site);
}
