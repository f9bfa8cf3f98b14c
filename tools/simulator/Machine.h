// The device while it runs a kernel: threads are fibers in warps, warps are in blocks, and blocks run on host threads.
//
// A block runs on one host thread. A lane runs until it waits, then the next lane of its warp runs, then the next warp.
// The last thread to arrive at a rendezvous evaluates it and wakes the others. Without a grid barrier, a host thread
// runs one block after another. With one, all blocks are alive, each host thread has a share of them, and host threads
// synchronise at the grid barrier.
#ifndef TILEWRIGHT_SIMULATOR_MACHINE_H
#define TILEWRIGHT_SIMULATOR_MACHINE_H

#include "tools/simulator/AsyncCopies.h"
#include "tools/simulator/DeviceProgram.h"
#include "tools/simulator/Fiber.h"
#include "tools/simulator/L2Cache.h"
#include "tools/simulator/Memory.h"
#include "tools/simulator/Shadow.h"
#include "tools/simulator/TransactionBarriers.h"
#include "tools/simulator/Warpgroups.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

namespace tilewright::simulator {

struct Block;
struct Warp;
struct Worker;
class Machine;

enum class Wait { none, warp, block, cluster, grid, exited };

struct Thread {
  Context context;
  Block *block;
  Warp *warp;
  uint32_t index, lane; ///< index in the block, and lane in the warp
  Wait wait = Wait::none;
  uint32_t site = 0; ///< site at which it waits
  uint32_t mask = 0; ///< lanes for which it waits
  uint32_t clusterArrivals = 0, clusterWaits = 0;
  std::array<uint32_t, 3> operands = {};
  uint64_t result = 0;
  void *registers = nullptr;             ///< its operands of the warp-wide op in which it waits
  std::array<uint32_t, 4> matrices = {}; ///< result of its last ldmatrix
  AsyncCopies copies;
  ThreadProducts products;
  std::vector<uint32_t> reached; ///< phases that it has waited for, for each mbarrier of the block
  int64_t fuel = 0;              ///< instructions until limits are checked
  uint64_t instructions = 0;
};

/// The accesses of a warp at one site between two barriers. An occurrence is one access of the whole warp and holds the
/// addresses of its lanes.
struct Occurrences {
  struct Occurrence {
    uint32_t lanes = 0;
    std::array<char *, 32> addresses;
  };
  std::vector<Occurrence> open;       ///< occurrences that are done, then those that only some lanes have reached
  uint32_t done = 0;                  ///< number of occurrences that all lanes have reached
  std::array<uint32_t, 32> next = {}; ///< next occurrence of each lane

  void forgetDone() {
    open.erase(open.begin(), open.begin() + done);
    for (uint32_t &index : next)
      index -= std::min(index, done);
    done = 0;
  }
};

struct Warp {
  Block *block;
  Thread *threads;
  uint32_t size = 0;
  uint32_t present = 0, runnable = 0; ///< masks of the lanes that have not ended, and of those that do not wait
  uint32_t lastLane = 0;
  uint32_t barriers = 0;
  size_t products = 0;          ///< number of products of its warpgroup that it has started
  std::vector<uint32_t> visits; ///< executions of each basic block by each lane, since the last flush
  std::vector<Occurrences> occurrences;
};

struct Block {
  uint64_t index = 0;
  std::array<uint32_t, 3> id = {};
  Worker *worker = nullptr;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::unique_ptr<char[]> memory;
  char *shared = nullptr;
  std::unique_ptr<SharedShadow> shadow;
  std::unique_ptr<UnfinishedPieces> unfinished;
  std::unique_ptr<PiecesInUse> inUse;
  TransactionBarriers transactions;
  std::vector<WarpgroupLog> warpgroups;
  std::unique_ptr<Stacks> stacks;
  uint32_t live = 0, arrived = 0, barrierSite = 0;
  uint32_t firstBarrier = 1, barriers = 1, gridBarriers = 0;
  std::vector<Block *> cluster; ///< blocks of its cluster, by rank
  uint32_t rank = 0;
  /// Threads of the cluster that have arrived at its barrier, and number of completed barriers. Only the block of rank
  /// 0 has these counts.
  uint32_t clusterArrived = 0, clusterPhases = 0;
  bool atGrid = false, failed = false;
  BlockTrace trace;
};

/// Executions of a basic block: by threads, by warps, and by warps with inactive lanes.
struct Visits {
  uint64_t threads = 0, warps = 0, divergent = 0;
};

/// A host thread with its own counts.
struct Worker {
  Machine *machine = nullptr;
  Context scheduler;
  std::vector<std::unique_ptr<Block>> blocks;
  std::vector<AccessCounts> sites;
  std::vector<Visits> visits;
  std::vector<BindingReport> regions;
  uint64_t warpBarriers = 0, blockBarriers = 0, clusterBarriers = 0, gridBarriers = 0, shuffles = 0;
  uint64_t sweeps = 0;
  double startSeconds = 0;

  bool isOutOfTime() const;
};

class Machine {
public:
  using Entry = void (*)(void **arguments);

  Machine(const DeviceProgram &program, const Launch &launch, GlobalMemory &memory, Entry entry);

  /// Runs the kernel. Returns an error if it cannot run at all.
  std::string run();

  // --- counts (Counts.cpp) -------------------------------------------------------------------------------------------

  void fill(Report &report);
  /// Counts the accesses of the lanes since the last barrier, and starts new occurrences.
  void flush(Warp &warp);

  // --- waiting and ending --------------------------------------------------------------------------------------------

  /// Ends the kernel with a fault. The thread does not continue.
  [[noreturn]] void fail(Thread &thread, const char *kind, const std::string &message, uint32_t site,
                         const std::string &otherLocation = "");

  /// Suspends the thread until another one wakes it.
  void suspend(Thread &thread);
  /// Lets other threads run before the thread continues.
  void giveWay(Thread &thread);
  void arriveAtBlock(Thread &thread, uint32_t site);
  void arriveAtCluster(Thread &thread, uint32_t site);
  void waitForCluster(Thread &thread, uint32_t site);
  void arriveAtGrid(Thread &thread, uint32_t site);
  /// Checks the limits when a thread has used up its instructions. Gives it more of them, or ends it.
  void refuel(Thread &thread, const std::string &location);

  const DeviceProgram &program;
  const Launch &launch;
  GlobalMemory &memory;
  const SharedLayout layout;
  const uint32_t granule;
  std::array<uint32_t, 3> blockSize;
  uint32_t numThreads;

private:
  /// Instructions that a thread gets before limits and clock are checked.
  static constexpr int64_t fuelSlice = 1 << 20;

  std::unique_ptr<Block> makeBlock(Worker &worker);
  void start(Block &block, uint64_t index);
  static void threadMain();
  /// Runs every warp of the block until it waits. Returns false if no warp could run.
  bool sweep(Block &block);
  void wake(Block &block);

  // --- blocks on host threads (HostThreads.cpp) ----------------------------------------------------------------------

  void runBlocks(Worker &worker);
  /// Runs the blocks of a cluster to their end, in turns: each runs until its threads wait. The kernel is stuck only if
  /// no block of the cluster can run.
  void runCluster(Worker &worker);
  /// Runs the worker's share of the blocks of a kernel with grid barriers.
  void runTogether(Worker &worker, size_t stride);
  /// Waits at a grid barrier for the other host threads. Returns false if all blocks have ended or the kernel has
  /// failed.
  bool syncAtGrid(Worker &worker);

  // --- faults (Faults.cpp) -------------------------------------------------------------------------------------------

  /// Records the fault of a block in which some thread waits and no thread can run.
  void diagnose(Block &block);
  void record(Block &block, Fault fault);
  static std::string describe(const Block &block);
  std::string describe(const Thread &thread) const;
  std::string whereabouts(const Thread &thread) const;

  Entry entry;
  std::vector<void *> arguments;
  std::vector<uint64_t> slots;
  uint64_t numBlocks;
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<BlockTrace> traces;
  std::atomic<uint64_t> nextBlock{0};

  std::mutex mutex;
  std::condition_variable allArrived;
  std::atomic<bool> failed{false};
  Fault fault;
  uint64_t faultBlock = ~uint64_t(0);
  size_t waitingWorkers = 0, syncPoints = 0;
  bool goOn = true;
};

inline Thread &currentThread() { return *static_cast<Thread *>(stackOwner()); }

inline Moment momentOf(const Thread &thread) {
  const Block &block = *thread.block;
  return {block.index,
          thread.index / 32,
          thread.lane,
          block.gridBarriers,
          block.barriers,
          thread.warp->barriers,
          uint32_t(thread.products.proxyFences.size()),
          thread.clusterArrivals,
          thread.clusterWaits};
}

/// Checks an access of the thread to the given number of bytes.
void checkMemory(Thread &thread, uint32_t site, char *address, uint32_t bytes);
/// Checks an access and counts it.
void accessMemory(Thread &thread, uint32_t site, char *address, uint32_t bytes);

/// Counts one access of a warp, to which no more lanes will come.
void countAccess(Machine &machine, Block &block, uint32_t siteIndex, const Occurrences::Occurrence &occurrence);

/// Returns the name and address of every runtime function that a rewritten kernel calls.
std::vector<std::pair<const char *, void *>> runtimeFunctions();

} // namespace tilewright::simulator

#endif
