// The device while a kernel runs: threads as fibers in warps, warps in blocks, blocks on host threads.
//
// A block runs on one host thread: a lane until it waits, then the next lane of its warp, then the next warp. Whoever
// arrives last at a rendezvous evaluates it and wakes the others. Without a grid barrier a host thread takes one block
// after another; with one, all blocks are alive, each host thread has its share of them, and host threads meet where
// the blocks do.
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
  uint32_t index, lane; ///< within the block, within the warp
  Wait wait = Wait::none;
  uint32_t site = 0; ///< where it waits
  uint32_t mask = 0; ///< the lanes it waits for
  uint32_t clusterArrivals = 0, clusterWaits = 0;
  std::array<uint32_t, 3> operands = {};
  uint64_t result = 0;
  void *registers = nullptr;             ///< of the op of the whole warp that it waits in
  std::array<uint32_t, 4> matrices = {}; ///< what it got from an ldmatrix
  AsyncCopies copies;
  ThreadProducts products;
  std::vector<uint32_t> reached; ///< by mbarrier of the block: phases that it has waited for
  int64_t fuel = 0;              ///< instructions until it is looked after
  uint64_t instructions = 0;
};

/// What the lanes of a warp do at one site between two barriers: occurrence by occurrence, the addresses.
struct Occurrences {
  struct Occurrence {
    uint32_t lanes = 0;
    std::array<char *, 32> addresses;
  };
  std::vector<Occurrence> open; ///< the ones that some lane has reached and some has not, after those done
  uint32_t done = 0;
  std::array<uint32_t, 32> next = {}; ///< per lane

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
  uint32_t present = 0, runnable = 0; ///< lanes that have not ended; lanes that do not wait
  uint32_t lastLane = 0;
  uint32_t barriers = 0;
  size_t products = 0;          ///< of its warpgroup, that it has asked for
  std::vector<uint32_t> visits; ///< per basic block and lane, since the last flush
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
  std::vector<Block *> cluster; ///< its blocks by rank
  uint32_t rank = 0;
  /// Of the block of rank 0: threads of the cluster that have arrived at its barrier, and how often all had.
  uint32_t clusterArrived = 0, clusterPhases = 0;
  bool atGrid = false, failed = false;
  BlockTrace trace;
};

/// Visits of a basic block: by threads, by warps, and by warps of which not every lane came along.
struct Visits {
  uint64_t threads = 0, warps = 0, divergent = 0;
};

/// A host thread, with its own counts.
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

  /// Runs the kernel; an error if it cannot be run at all.
  std::string run();

  // --- what is counted (Counts.cpp) ----------------------------------------------------------------------------------

  void fill(Report &report);
  /// Completes what the lanes did since the last barrier: their occurrences begin anew.
  void flush(Warp &warp);

  // --- threads that wait, and what ends them -------------------------------------------------------------------------

  /// Ends the kernel with a fault; the thread does not go on.
  [[noreturn]] void fail(Thread &thread, const char *kind, const std::string &message, uint32_t site,
                         const std::string &otherLocation = "");

  /// The thread has nothing to do before others have arrived, or gives way to them.
  void suspend(Thread &thread);
  void giveWay(Thread &thread);
  void arriveAtBlock(Thread &thread, uint32_t site);
  void arriveAtCluster(Thread &thread, uint32_t site);
  void waitForCluster(Thread &thread, uint32_t site);
  void arriveAtGrid(Thread &thread, uint32_t site);
  /// The instructions given to a thread are used up: gives it more, or ends it.
  void refuel(Thread &thread, const std::string &location);

  const DeviceProgram &program;
  const Launch &launch;
  GlobalMemory &memory;
  const SharedLayout layout;
  const uint32_t granule;
  std::array<uint32_t, 3> blockSize;
  uint32_t numThreads;

private:
  /// How many instructions a thread gets before limits and clock are looked at.
  static constexpr int64_t fuelSlice = 1 << 20;

  std::unique_ptr<Block> makeBlock(Worker &worker);
  void start(Block &block, uint64_t index);
  static void threadMain();
  /// Runs every warp of the block until it waits. False if none could go on.
  bool sweep(Block &block);
  void wake(Block &block);

  // --- blocks on host threads (HostThreads.cpp) ----------------------------------------------------------------------

  void runBlocks(Worker &worker);
  /// Block by block, each until its threads wait, to the end of all. Who waits for another block is not stuck before
  /// all are.
  void runCluster(Worker &worker);
  void runTogether(Worker &worker, size_t stride);
  /// Waits for the other host threads, whose blocks all wait at the grid barrier or have ended. False if that was the
  /// end.
  bool syncAtGrid(Worker &worker);

  // --- faults (Faults.cpp) -------------------------------------------------------------------------------------------

  /// Nobody in the block can go on, and somebody waits.
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

/// Checks an access of the thread, of as many bytes of those of its site, and with `accessMemory` counts it.
void checkMemory(Thread &thread, uint32_t site, char *address, uint32_t bytes);
void accessMemory(Thread &thread, uint32_t site, char *address, uint32_t bytes);

/// Counts one warp access whose lanes have all arrived.
void countAccess(Machine &machine, Block &block, uint32_t siteIndex, const Occurrences::Occurrence &occurrence);

/// Name and address of every function that the rewritten kernel calls.
std::vector<std::pair<const char *, void *>> runtimeFunctions();

} // namespace tilewright::simulator

#endif
