// Runs the blocks of a launch on host threads, which synchronise at grid barriers.
#include "tools/simulator/Machine.h"

#include <ctime>
#include <thread>

using namespace tilewright::simulator;

/// Returns the processor time of the calling thread. Unlike elapsed time, it does not grow while the host is busy with
/// other work.
static double processorSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

bool Worker::isOutOfTime() const { return processorSeconds() - startSeconds > machine->launch.limits.seconds; }

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
    worker.startSeconds = processorSeconds();
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
  } while (syncAtGrid(worker));
  for (std::unique_ptr<Block> &block : worker.blocks)
    traces[block->index] = std::move(block->trace);
}

bool Machine::syncAtGrid(Worker &worker) {
  std::unique_lock<std::mutex> lock(mutex);
  size_t syncPoint = syncPoints;
  if (++waitingWorkers < workers.size()) {
    allArrived.wait(lock, [&] { return syncPoints != syncPoint || failed; });
  } else {
    waitingWorkers = 0;
    ++syncPoints;
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
               describe(*waiting) + " waits at the grid barrier, " + describe(*other) +
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
