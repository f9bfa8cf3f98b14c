// A copy moves its bytes when the thread waits for its group. Until then, its destination counts as unfinished, so that
// earlier accesses are found.
#include "tools/simulator/AsyncCopies.h"
#include "tools/simulator/Machine.h"

#include <cstring>

using namespace tilewright::simulator;

static Machine &machineOf(const Thread &thread) { return *thread.block->worker->machine; }

static uint64_t pieceOf(const Thread &thread, const char *address) {
  return (address - thread.block->shared) / machineOf(thread).granule;
}

void tilewright::simulator::startCopy(Thread &thread, uint32_t readSite, uint32_t writeSite, char *target, char *source,
                                      uint32_t bytes, uint32_t sourceBytes) {
  if (sourceBytes > bytes)
    machineOf(thread).fail(thread, "out-of-bounds",
                           "a copy of " + std::to_string(bytes) + " bytes reads " + std::to_string(sourceBytes),
                           writeSite);
  if (sourceBytes > 0)
    accessMemory(thread, readSite, source, sourceBytes);
  accessMemory(thread, writeSite, target, bytes);
  for (uint32_t byte = 0; byte < bytes; byte += machineOf(thread).granule)
    thread.block->unfinished->begin(pieceOf(thread, target + byte), writeSite);
  thread.copies.open.push_back({target, source, bytes, sourceBytes, writeSite, thread.copies.groups});
}

void tilewright::simulator::commitCopies(Thread &thread) { ++thread.copies.groups; }

/// Completes a copy. Its bytes count as written by the thread at this moment.
static void complete(Thread &thread, const AsyncCopy &copy) {
  std::memcpy(copy.target, copy.source, copy.sourceBytes);
  std::memset(copy.target + copy.sourceBytes, 0, copy.bytes - copy.sourceBytes);
  Block &block = *thread.block;
  Moment moment = momentOf(thread);
  for (uint32_t byte = 0; byte < copy.bytes; byte += machineOf(thread).granule) {
    uint64_t piece = pieceOf(thread, copy.target + byte);
    block.unfinished->end(piece);
    block.shadow->access(piece, moment, copy.site, {false, true, false}, block.firstBarrier);
  }
}

void tilewright::simulator::waitForCopies(Thread &thread, uint32_t groups) {
  std::vector<AsyncCopy> &open = thread.copies.open;
  auto rest = open.begin();
  while (rest != open.end() && rest->group + groups < thread.copies.groups)
    complete(thread, *rest++);
  open.erase(open.begin(), rest);
}

void tilewright::simulator::checkNoneIsOpen(Thread &thread) {
  if (thread.copies.open.empty())
    return;
  const AsyncCopy &copy = thread.copies.open.front();
  machineOf(thread).fail(thread, "unfinished",
                         copy.group < thread.copies.groups ? "the thread ends without waiting for this copy"
                                                           : "the thread ends without committing this copy",
                         copy.site);
}
