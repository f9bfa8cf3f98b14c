// Faults, which end a kernel: threads that violate a rule, wait forever, or run for too long.
#include "tools/simulator/Machine.h"

using namespace tilewright::simulator;

static std::string triple(uint64_t x, uint64_t y, uint64_t z) {
  return "(" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) + ")";
}

std::string Machine::describe(const Block &block) { return "block " + triple(block.id[0], block.id[1], block.id[2]); }

std::string Machine::describe(const Thread &thread) const {
  uint32_t x = thread.index % blockSize[0], y = thread.index / blockSize[0] % blockSize[1];
  return "thread " + triple(x, y, thread.index / blockSize[0] / blockSize[1]) + " of " + describe(*thread.block);
}

std::string Machine::whereabouts(const Thread &thread) const {
  if (thread.wait == Wait::exited)
    return "has ended";
  return "waits at " + program.sites[thread.site].operation + " (" + program.sites[thread.site].location + ")";
}

void Machine::record(Block &block, Fault newFault) {
  block.failed = true;
  std::lock_guard<std::mutex> lock(mutex);
  if (block.index < faultBlock) { // report the lowest block, whatever the order of the host's threads
    fault = std::move(newFault);
    faultBlock = block.index;
  }
  failed = true;
  allArrived.notify_all();
}

void Machine::fail(Thread &thread, const char *kind, const std::string &message, uint32_t site,
                   const std::string &otherLocation) {
  { // free locals before giveWay(), which never returns
    const Site &at = program.sites[site];
    record(*thread.block, {kind, message, at.operation, at.location, otherLocation});
  }
  giveWay(thread);
  __builtin_unreachable();
}

void Machine::diagnose(Block &block) {
  const Thread *waiting = nullptr;
  for (const Thread &thread : block.threads) // prefer a waiting warp, since it may be why the block waits
    if (thread.wait == Wait::warp || (!waiting && thread.wait != Wait::exited))
      if (!waiting || waiting->wait != Wait::warp)
        waiting = &thread;
  const Thread *missing = nullptr;
  for (const Thread &thread : block.threads) {
    bool expected = waiting->wait != Wait::warp || (thread.warp == waiting->warp && (waiting->mask >> thread.lane & 1));
    bool arrived = thread.wait == waiting->wait && thread.site == waiting->site &&
                   (thread.wait != Wait::warp || thread.mask == waiting->mask);
    if (waiting->wait == Wait::cluster)
      arrived = thread.clusterArrivals >= waiting->clusterArrivals;
    if (!missing && expected && !arrived)
      missing = &thread;
  }
  if (waiting->wait == Wait::cluster)
    for (const Block *peer : block.cluster)
      for (const Thread &thread : peer->threads)
        if (!missing && thread.clusterArrivals < waiting->clusterArrivals)
          missing = &thread;
  const Site &site = program.sites[waiting->site];
  std::string message = describe(*waiting) + " waits here for others that never come";
  if (missing)
    message += ": " + describe(*missing) + " " + whereabouts(*missing);
  record(block, {"barrier", message, site.operation, site.location,
                 missing && missing->wait != Wait::exited ? program.sites[missing->site].location : ""});
}

void Machine::refuel(Thread &thread, const std::string &location) {
  uint64_t limit = launch.limits.instructionsPerThread;
  thread.instructions += std::min<uint64_t>(fuelSlice, limit);
  const char *what = nullptr;
  if (thread.instructions >= limit)
    what = "has run as many instructions as are allowed";
  else if (thread.block->worker->isOutOfTime())
    what = "has run for as long as is allowed";
  if (what) {
    record(*thread.block, {"endless", describe(thread) + " " + what, "", location, ""});
    giveWay(thread);
  }
  if (failed) // another block has failed, so this one need not finish
    thread.block->failed = true, giveWay(thread);
  thread.fuel = std::min<int64_t>(fuelSlice, limit - thread.instructions);
}
