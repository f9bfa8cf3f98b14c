#include "tools/simulator/Machine.h"

#include <thread>

using namespace tilewright::simulator;

/// How many instructions a thread gets before limits and clock are looked at.
static constexpr int64_t fuelSlice = 1 << 20;

static std::string triple(uint64_t x, uint64_t y, uint64_t z) {
  return "(" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) + ")";
}

Machine::Machine(const DeviceProgram &program, const Launch &launch, GlobalMemory &memory, Entry entry)
    : program(program), launch(launch), memory(memory), layout(program.shared, launch.dynamicSharedBytes),
      granule(program.granule()), blockSize(launch.block), entry(entry) {
  for (int dim = 0; dim < 3; ++dim)
    if (blockSize[dim] == 0)
      blockSize[dim] = std::max(1u, program.maxThreads[dim]);
  numThreads = blockSize[0] * blockSize[1] * blockSize[2];
  numBlocks = uint64_t(launch.grid[0]) * launch.grid[1] * launch.grid[2];
  for (size_t index = 0; index < launch.bindings.size(); ++index)
    slots.push_back(reinterpret_cast<uint64_t>(memory.regions[index].begin));
  for (int32_t constant : launch.constants)
    slots.push_back(uint32_t(constant));
  for (uint64_t &slot : slots)
    arguments.push_back(&slot);
  traces.resize(numBlocks);
  deadline = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                    std::chrono::duration<double>(launch.limits.seconds));
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

std::unique_ptr<Block> Machine::makeBlock(Worker &worker) {
  auto block = std::make_unique<Block>();
  block->worker = &worker;
  block->threads.resize(numThreads);
  block->warps.resize((numThreads + 31) / 32);
  block->stacks = std::make_unique<Stacks>(numThreads);
  // Descriptors of matrices have the last 18 bits of an address.
  constexpr uint64_t window = 1 << 18;
  block->memory.reset(new char[layout.arenaBytes + window]);
  uintptr_t aligned = (reinterpret_cast<uintptr_t>(block->memory.get()) + window - 1) & ~uintptr_t(window - 1);
  block->shared = reinterpret_cast<char *>(aligned);
  block->shadow = std::make_unique<SharedShadow>(layout.arenaBytes / granule + 1);
  block->unfinished = std::make_unique<UnfinishedPieces>(layout.arenaBytes / granule + 1);
  block->inUse = std::make_unique<PiecesInUse>(layout.arenaBytes / granule + 1);
  for (size_t index = 0; index < block->warps.size(); ++index) {
    Warp &warp = block->warps[index];
    warp.block = block.get();
    warp.threads = &block->threads[index * 32];
    warp.size = std::min<uint32_t>(32, numThreads - index * 32);
    warp.visits.assign(program.basicBlocks.size() * 32, 0);
    warp.occurrences.resize(program.sites.size());
  }
  for (uint32_t index = 0; index < numThreads; ++index) {
    Thread &thread = block->threads[index];
    thread.block = block.get();
    thread.warp = &block->warps[index / 32];
    thread.index = index;
    thread.lane = index % 32;
  }
  return block;
}

void Machine::start(Block &block, uint64_t index) {
  const auto &grid = launch.grid;
  block.index = index;
  block.id = {uint32_t(index % grid[0]), uint32_t(index / grid[0] % grid[1]), uint32_t(index / grid[0] / grid[1])};
  block.live = numThreads;
  block.arrived = 0;
  block.firstBarrier = ++block.barriers;
  block.gridBarriers = 0;
  block.clusterArrived = block.clusterPhases = 0;
  block.trace.assign(1, {});
  block.transactions.clear();
  block.warpgroups.clear();
  for (Warp &warp : block.warps) {
    warp.present = warp.runnable = warp.size == 32 ? ~0u : (1u << warp.size) - 1;
    warp.lastLane = 31;
    warp.barriers = 0;
    warp.products = 0;
  }
  for (Thread &thread : block.threads) {
    thread.context = block.stacks->start(thread.index, &thread, &Machine::threadMain);
    thread.wait = Wait::none;
    thread.instructions = 0;
    thread.copies = {};
    thread.products = {};
    thread.reached.clear();
    thread.clusterArrivals = thread.clusterWaits = 0;
    thread.fuel = std::min<int64_t>(fuelSlice, launch.limits.instructionsPerThread);
  }
}

void Machine::threadMain() {
  Thread &thread = currentThread();
  Machine &machine = *thread.block->worker->machine;
  machine.entry(machine.arguments.data());
  checkNoneIsOpen(thread);
  checkProductsAreComplete(thread);
  checkAllWereWaitedFor(thread);
  thread.wait = Wait::exited;
  thread.warp->present &= ~(1u << thread.lane);
  --thread.block->live;
  if (thread.warp->present == 0)
    machine.flush(*thread.warp);
  machine.suspend(thread);
  __builtin_unreachable();
}

/// Runs every warp of the block until it waits. False if none could go on.
bool Machine::sweep(Block &block) {
  // Threads that wait for each other in loops use few instructions, so the clock is looked at here as well.
  if (++block.worker->sweeps % 256 == 0 && std::chrono::steady_clock::now() > deadline) {
    record(block,
           {"endless", "block " + triple(block.id[0], block.id[1], block.id[2]) + " has run for as long as is allowed",
            "", "", ""});
    return false;
  }
  bool progress = false;
  for (Warp &warp : block.warps) {
    if (!warp.runnable)
      continue;
    progress = true;
    uint32_t after = warp.lastLane == 31 ? 0 : warp.runnable & (~0u << (warp.lastLane + 1));
    uint32_t lane = __builtin_ctz(after ? after : warp.runnable);
    warp.lastLane = lane;
    switchContext(block.worker->scheduler, warp.threads[lane].context);
    if (block.failed)
      return false;
  }
  return progress;
}

void Machine::suspend(Thread &thread) {
  Warp &warp = *thread.warp;
  warp.runnable &= ~(1u << thread.lane);
  if (!warp.runnable) {
    switchContext(thread.context, thread.block->worker->scheduler);
    return;
  }
  uint32_t after = thread.lane == 31 ? 0 : warp.runnable & (~0u << (thread.lane + 1));
  Thread &next = warp.threads[__builtin_ctz(after ? after : warp.runnable)];
  warp.lastLane = next.lane;
  switchContext(thread.context, next.context);
}

void Machine::giveWay(Thread &thread) { switchContext(thread.context, thread.block->worker->scheduler); }

void Machine::wake(Block &block) {
  block.arrived = 0;
  ++block.barriers;
  for (Warp &warp : block.warps) {
    flush(warp);
    warp.runnable = warp.present;
  }
  for (Thread &thread : block.threads)
    if (thread.wait != Wait::exited)
      thread.wait = Wait::none;
}

void Machine::arriveAtBlock(Thread &thread, uint32_t site) {
  Block &block = *thread.block;
  if (block.arrived > 0 && block.barrierSite != site)
    fail(thread, "barrier", describe(thread) + " waits here while others of its block wait at another barrier", site,
         program.sites[block.barrierSite].location);
  block.barrierSite = site;
  if (++block.arrived == numThreads) {
    ++block.worker->blockBarriers;
    wake(block);
    return;
  }
  thread.wait = Wait::block;
  thread.site = site;
  suspend(thread);
}

/// Whoever is the last lets those go on that wait already.
void Machine::arriveAtCluster(Thread &thread, uint32_t site) {
  if (thread.clusterArrivals != thread.clusterWaits)
    fail(thread, "barrier", describe(thread) + " arrives at the cluster's barrier again before it has waited", site);
  ++thread.clusterArrivals;
  Block &first = *thread.block->cluster.front();
  if (++first.clusterArrived < numThreads * thread.block->cluster.size())
    return;
  first.clusterArrived = 0;
  ++first.clusterPhases;
  ++thread.block->worker->clusterBarriers;
  for (Block *block : thread.block->cluster)
    for (Thread &other : block->threads)
      if (other.wait == Wait::cluster) {
        other.wait = Wait::none;
        other.warp->runnable |= 1u << other.lane;
      }
}

void Machine::waitForCluster(Thread &thread, uint32_t site) {
  if (thread.clusterArrivals == thread.clusterWaits)
    fail(thread, "barrier", describe(thread) + " waits at the cluster's barrier without having arrived", site);
  if (thread.block->cluster.front()->clusterPhases < thread.clusterArrivals) {
    thread.wait = Wait::cluster;
    thread.site = site;
    suspend(thread);
  }
  ++thread.clusterWaits;
}

void Machine::arriveAtGrid(Thread &thread, uint32_t site) {
  Block &block = *thread.block;
  if (block.arrived > 0 && block.barrierSite != site)
    fail(thread, "barrier", describe(thread) + " waits here while others of its block wait at another barrier", site,
         program.sites[block.barrierSite].location);
  block.barrierSite = site;
  block.atGrid = ++block.arrived == numThreads;
  thread.wait = Wait::grid;
  thread.site = site;
  suspend(thread);
}

//===----------------------------------------------------------------------===//
// Host threads
//===----------------------------------------------------------------------===//

std::string Machine::run() {
  unsigned hostThreads = launch.hostThreads ? launch.hostThreads : std::max(1u, std::thread::hardware_concurrency());
  size_t count = std::min<uint64_t>(hostThreads, numBlocks);
  for (size_t index = 0; index < count; ++index) {
    auto worker = std::make_unique<Worker>();
    worker->machine = this;
    worker->sites.resize(program.sites.size());
    worker->visits.resize(program.basicBlocks.size());
    worker->regions.resize(memory.regions.size());
    uint64_t alive = program.gridBarrier ? (numBlocks - index + count - 1) / count : program.cluster;
    for (uint64_t block = 0; block < alive; ++block) {
      worker->blocks.push_back(makeBlock(*worker));
      if (!worker->blocks.back()->stacks->valid())
        return "the host has no memory for the stacks of " + std::to_string(alive * count) + " blocks of " +
               std::to_string(numThreads) + " threads; launch fewer";
    }
    uint64_t size = program.gridBarrier ? 1 : program.cluster;
    for (uint64_t block = 0; block < alive; ++block) {
      worker->blocks[block]->rank = block % size;
      for (uint64_t rank = 0; rank < size; ++rank)
        worker->blocks[block]->cluster.push_back(worker->blocks[block - block % size + rank].get());
    }
    workers.push_back(std::move(worker));
  }
  std::vector<std::thread> threads;
  for (size_t index = 0; index < count; ++index) {
    Worker &worker = *workers[index];
    if (program.gridBarrier)
      for (size_t own = 0; own < worker.blocks.size(); ++own)
        start(*worker.blocks[own], index + own * count);
  }
  auto work = [&](size_t index) {
    Worker &worker = *workers[index];
    if (program.gridBarrier)
      runTogether(worker, count);
    else
      runBlocks(worker);
  };
  for (size_t index = 1; index < count; ++index)
    threads.emplace_back(work, index);
  work(0);
  for (std::thread &thread : threads)
    thread.join();
  return "";
}

void Machine::runBlocks(Worker &worker) {
  while (!failed) {
    uint64_t first = nextBlock.fetch_add(worker.blocks.size());
    if (first >= numBlocks)
      return;
    for (std::unique_ptr<Block> &block : worker.blocks)
      start(*block, first + block->rank);
    runCluster(worker);
    for (std::unique_ptr<Block> &block : worker.blocks)
      traces[block->index] = std::move(block->trace);
  }
}

/// Block by block, each until its threads wait, to the end of all. Who waits for another block is not stuck before all
/// are.
void Machine::runCluster(Worker &worker) {
  Block *waiting = worker.blocks.front().get();
  bool progress = true;
  while (waiting) {
    if (!progress)
      return diagnose(*waiting);
    waiting = nullptr;
    progress = false;
    for (std::unique_ptr<Block> &block : worker.blocks) {
      progress |= block->live > 0 && sweep(*block);
      if (block->failed)
        return;
      if (block->live > 0)
        waiting = block.get();
    }
  }
}

void Machine::runTogether(Worker &worker, size_t stride) {
  do {
    bool busy = true;
    while (busy && !failed) {
      busy = false;
      for (std::unique_ptr<Block> &block : worker.blocks) {
        if (failed)
          break;
        if (block->live == 0 || block->atGrid)
          continue;
        busy = true;
        if (!sweep(*block) && !block->failed && !block->atGrid && block->live > 0)
          diagnose(*block);
      }
    }
  } while (meetAtGrid(worker));
  for (std::unique_ptr<Block> &block : worker.blocks)
    traces[block->index] = std::move(block->trace);
}

/// Waits for the other host threads, whose blocks all wait at the grid barrier or have ended. False if that was the
/// end.
bool Machine::meetAtGrid(Worker &worker) {
  std::unique_lock<std::mutex> lock(mutex);
  size_t meeting = meetings;
  if (++waitingWorkers < workers.size()) {
    allArrived.wait(lock, [&] { return meetings != meeting || failed; });
  } else {
    waitingWorkers = 0;
    ++meetings;
    const Block *waiting = nullptr, *other = nullptr;
    for (std::unique_ptr<Worker> &each : workers)
      for (std::unique_ptr<Block> &block : each->blocks) {
        if (block->atGrid && !waiting)
          waiting = block.get();
        else if (!block->atGrid || block->barrierSite != waiting->barrierSite)
          other = block.get();
      }
    goOn = waiting != nullptr;
    if (waiting && other && !failed) {
      const Site &site = program.sites[waiting->barrierSite];
      fault = {"barrier",
               "block " + triple(waiting->id[0], waiting->id[1], waiting->id[2]) +
                   " waits at the grid barrier, block " + triple(other->id[0], other->id[1], other->id[2]) +
                   (other->atGrid ? " waits at another one" : " has ended without it"),
               site.operation, site.location, other->atGrid ? program.sites[other->barrierSite].location : ""};
      faultBlock = waiting->index;
      failed = true;
    }
    if (waiting && !other)
      ++worker.gridBarriers;
    allArrived.notify_all();
  }
  if (failed || !goOn)
    return false;
  lock.unlock();
  for (std::unique_ptr<Block> &block : worker.blocks) {
    block->atGrid = false;
    ++block->gridBarriers;
    wake(*block);
    block->trace.emplace_back();
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

std::string Machine::describe(const Thread &thread) const {
  uint32_t x = thread.index % blockSize[0], y = thread.index / blockSize[0] % blockSize[1];
  const auto &id = thread.block->id;
  return "thread " + triple(x, y, thread.index / blockSize[0] / blockSize[1]) + " of block " +
         triple(id[0], id[1], id[2]);
}

std::string Machine::whereabouts(const Thread &thread) const {
  if (thread.wait == Wait::exited)
    return "has ended";
  return "waits at " + program.sites[thread.site].operation + " (" + program.sites[thread.site].location + ")";
}

void Machine::record(Block &block, Fault newFault) {
  block.failed = true;
  std::lock_guard<std::mutex> lock(mutex);
  if (block.index < faultBlock) { // which one is found does not depend on the host's threads
    fault = std::move(newFault);
    faultBlock = block.index;
  }
  failed = true;
  allArrived.notify_all();
}

void Machine::fail(Thread &thread, const char *kind, const std::string &message, uint32_t site,
                   const std::string &otherLocation) {
  { // what is on a stack that is never left is never freed
    const Site &at = program.sites[site];
    record(*thread.block, {kind, message, at.operation, at.location, otherLocation});
  }
  giveWay(thread);
  __builtin_unreachable();
}

/// Nobody in the block can go on, and somebody waits.
void Machine::diagnose(Block &block) {
  const Thread *waiting = nullptr;
  for (const Thread &thread : block.threads) // a warp that waits in vain explains a block that does
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
  else if (std::chrono::steady_clock::now() > deadline)
    what = "has run for as long as is allowed";
  if (what) {
    record(*thread.block, {"endless", describe(thread) + " " + what, "", location, ""});
    giveWay(thread);
  }
  if (failed) // nobody waits for this block any more
    thread.block->failed = true, giveWay(thread);
  thread.fuel = std::min<int64_t>(fuelSlice, limit - thread.instructions);
}

//===----------------------------------------------------------------------===//
// Counts
//===----------------------------------------------------------------------===//

void Machine::flush(Warp &warp) {
  Worker &worker = *warp.block->worker;
  for (size_t index = 0; index < program.basicBlocks.size(); ++index) {
    uint32_t *visits = &warp.visits[index * 32];
    uint32_t most = 0, sum = 0;
    for (int lane = 0; lane < 32; ++lane) {
      most = std::max(most, visits[lane]);
      sum += visits[lane];
    }
    if (most == 0)
      continue;
    uint32_t least = *std::min_element(visits, visits + warp.size);
    Visits &total = worker.visits[index];
    total.threads += sum;
    total.warps += most;
    total.divergent += most - least;
    std::fill(visits, visits + 32, 0);
  }
  for (size_t site = 0; site < warp.occurrences.size(); ++site) {
    Occurrences &occurrences = warp.occurrences[site];
    for (size_t index = occurrences.done; index < occurrences.open.size(); ++index)
      countAccess(*this, *warp.block, site, occurrences.open[index]);
    if (occurrences.done > 0 || !occurrences.open.empty()) {
      occurrences.open.clear();
      occurrences.done = 0;
      occurrences.next.fill(0);
    }
  }
}

static const char *accessName(AccessKind kind) { return kind.atomic ? "atomic" : kind.writes ? "store" : "load"; }

void Machine::fill(Report &report) {
  report.kernel = program.kernel;
  report.device = launch.device.name;
  report.blocks = numBlocks;
  report.threadsPerBlock = numThreads;
  report.sharedBytesPerBlock = layout.usedBytes;
  report.bindings.resize(launch.bindings.size());
  std::vector<AccessCounts> sites(program.sites.size());
  for (std::unique_ptr<Worker> &worker : workers) {
    for (size_t index = 0; index < program.basicBlocks.size(); ++index) {
      const BasicBlock &block = program.basicBlocks[index];
      const Visits &visits = worker->visits[index];
      report.threadInstructions += visits.threads * block.total;
      report.warpInstructions += visits.warps * block.total;
      report.blockVisits += visits.warps;
      report.divergentBlockVisits += visits.divergent;
      for (unsigned kind = 0; kind < numInstructionClasses; ++kind)
        report.instructions[kind] += visits.warps * block.instructions[kind];
    }
    for (size_t index = 0; index < sites.size(); ++index)
      sites[index].add(worker->sites[index]);
    for (size_t index = 0; index < report.bindings.size(); ++index) {
      report.bindings[index].sectorsRead += worker->regions[index].sectorsRead;
      report.bindings[index].sectorsWritten += worker->regions[index].sectorsWritten;
    }
    report.warpBarriers += worker->warpBarriers;
    report.blockBarriers += worker->blockBarriers;
    report.clusterBarriers += worker->clusterBarriers;
    report.gridBarriers += worker->gridBarriers;
    report.shuffles += worker->shuffles;
  }
  if (report.warpInstructions > 0)
    report.activeLanes = double(report.threadInstructions) / (32.0 * report.warpInstructions);
  for (size_t index = 0; index < sites.size(); ++index) {
    const Site &site = program.sites[index];
    if (!site.isAccess || sites[index].requests == 0)
      continue;
    bool shared = site.space != Space::global && sites[index].sectors == 0;
    AccessCounts &sum = shared             ? (site.kind.writes ? report.sharedWrites : report.sharedReads)
                        : site.kind.atomic ? report.globalAtomics
                        : site.kind.writes ? report.globalWrites
                                           : report.globalReads;
    sum.add(sites[index]);
    report.sites.push_back(
        {site.operation, site.location, shared ? "shared" : "global", accessName(site.kind), sites[index]});
  }
  for (size_t index = 0; index < report.bindings.size(); ++index)
    if (launch.bindings[index].empty)
      report.bindings[index].bytesNeverWritten =
          std::min(launch.bindings[index].bytes, memory.regions[index].shadow->neverWritten() * granule);
  if (failed) {
    report.faults.push_back(fault);
    return;
  }
  uint64_t perMultiprocessor = launch.device.threadsPerMultiprocessor / std::max(1u, numThreads);
  if (layout.usedBytes > 0)
    perMultiprocessor = std::min(perMultiprocessor, launch.device.sharedBytes / layout.usedBytes);
  L2Cache cache(launch.device.l2Bytes, memory.numSectors);
  replay(traces, launch.device.multiprocessors * std::max<uint64_t>(1, perMultiprocessor), cache);
  report.dramBytesRead = cache.bytesRead;
  report.dramBytesWritten = cache.bytesWritten;
}
