// Creates and schedules fibers, and implements barriers of the block and the cluster. Lanes of a warp run one after
// another from wait to wait, which gives a deterministic order within a block.
#include "tools/simulator/Machine.h"

using namespace tilewright::simulator;

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
}

std::unique_ptr<Block> Machine::makeBlock(Worker &worker) {
  auto block = std::make_unique<Block>();
  block->worker = &worker;
  block->threads.resize(numThreads);
  block->warps.resize((numThreads + 31) / 32);
  block->stacks = std::make_unique<Stacks>(numThreads);
  // Descriptors of matrices hold the low 18 bits of an address, so the arena starts at a multiple of 2^18.
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

bool Machine::sweep(Block &block) {
  // Threads that wait for each other in loops execute few instructions, so the clock is checked here as well.
  if (++block.worker->sweeps % 256 == 0 && block.worker->isOutOfTime()) {
    record(block, {"endless", describe(block) + " has run for as long as is allowed", "", "", ""});
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

/// The last thread to arrive wakes those that already wait.
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
