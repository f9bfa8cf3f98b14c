// The runtime functions that a rewritten kernel calls, besides memory accesses: registers, shared variables, barriers,
// shuffles, votes and products. For an op of a whole warp, the lane that arrives last computes the results of all
// lanes.
#include "tools/simulator/Collectives.h"
#include "tools/simulator/Machine.h"
#include "tools/simulator/Matrices.h"

using namespace tilewright::simulator;

extern "C" void tilewright_simulator_access(uint32_t site, char *address);

namespace {
Machine &machineOf(const Thread &thread) { return *thread.block->worker->machine; }

uint32_t lanesOf(const Warp &warp, uint32_t mask) { return warp.size == 32 ? mask : mask & ((1u << warp.size) - 1); }

std::string laneText(uint32_t lane) { return "lane " + std::to_string(lane); }

/// Waits until every lane of the mask is at this site. The last one then runs `evaluate` once, for all lanes.
template <typename Evaluate>
uint64_t rendezvous(uint32_t site, uint32_t mask, std::array<uint32_t, 3> operands, Evaluate evaluate) {
  Thread &thread = currentThread();
  Warp &warp = *thread.warp;
  uint32_t lanes = lanesOf(warp, mask);
  if (!(lanes >> thread.lane & 1))
    machineOf(thread).fail(thread, "barrier", laneText(thread.lane) + " is not in the mask of lanes that it waits for",
                           site);
  thread.operands = operands;
  thread.site = site;
  thread.mask = lanes;
  thread.wait = Wait::warp;
  for (uint32_t set = lanes; set; set &= set - 1) {
    const Thread &other = warp.threads[__builtin_ctz(set)];
    if (other.wait != Wait::warp || other.site != site || other.mask != lanes) {
      machineOf(thread).suspend(thread);
      return thread.result;
    }
  }
  evaluate(thread, lanes);
  for (uint32_t set = lanes; set; set &= set - 1)
    warp.threads[__builtin_ctz(set)].wait = Wait::none;
  warp.runnable |= lanes;
  return thread.result;
}

/// Returns the lane that a shuffle reads, and true if it is the requested one (PTX ISA, shfl.sync).
std::pair<uint32_t, bool> shuffleSource(ShuffleKind kind, uint32_t lane, uint32_t offset, uint32_t maskAndClamp) {
  int segment = maskAndClamp >> 8 & 31, clamp = maskAndClamp & 31, own = lane, by = offset & 31;
  int last = (own & segment) | (clamp & ~segment), first = own & segment;
  int source = own;
  bool valid = true;
  switch (kind) {
  case ShuffleKind::up:
    source = own - by;
    valid = source >= last;
    break;
  case ShuffleKind::down:
    source = own + by;
    valid = source <= last;
    break;
  case ShuffleKind::butterfly:
    source = own ^ by;
    valid = source <= last;
    break;
  case ShuffleKind::index:
    source = first | (by & ~segment);
    valid = source <= last;
    break;
  }
  return {valid ? source : own, valid};
}

/// Returns the value in the low 32 bits, and in bit 32 whether the source lane is the requested one.
uint64_t shuffle(uint32_t site, ShuffleKind kind, uint32_t mask, uint32_t value, uint32_t offset, uint32_t clamp) {
  return rendezvous(site, mask, {value, offset, clamp}, [&](Thread &last, uint32_t lanes) {
    Warp &warp = *last.warp;
    ++last.block->worker->shuffles;
    for (uint32_t set = lanes; set; set &= set - 1) {
      Thread &thread = warp.threads[__builtin_ctz(set)];
      auto [source, valid] = shuffleSource(kind, thread.lane, thread.operands[1], thread.operands[2]);
      if (!(lanes >> source & 1))
        machineOf(last).fail(last, "never-written",
                             laneText(thread.lane) + " reads " + laneText(source) + ", which does not take part", site);
      thread.result = uint64_t(valid) << 32 | warp.threads[source].operands[0];
    }
  });
}

uint32_t vote(uint32_t site, VoteKind kind, uint32_t mask, uint32_t predicate) {
  return rendezvous(site, mask, {predicate, 0, 0}, [&](Thread &last, uint32_t lanes) {
    ++last.block->worker->shuffles;
    uint32_t ballot = 0;
    for (uint32_t set = lanes; set; set &= set - 1) {
      uint32_t lane = __builtin_ctz(set);
      ballot |= (last.warp->threads[lane].operands[0] & 1) << lane;
    }
    uint32_t result = kind == VoteKind::ballot ? ballot
                      : kind == VoteKind::any  ? ballot != 0
                      : kind == VoteKind::all  ? ballot == lanes
                                               : ballot == lanes || ballot == 0;
    for (uint32_t set = lanes; set; set &= set - 1)
      last.warp->threads[__builtin_ctz(set)].result = result;
  });
}

uint32_t combine(ReduceKind kind, uint32_t a, uint32_t b) {
  switch (kind) {
  case ReduceKind::add:
    return a + b;
  case ReduceKind::bitAnd:
    return a & b;
  case ReduceKind::bitOr:
    return a | b;
  case ReduceKind::bitXor:
    return a ^ b;
  case ReduceKind::unsignedMin:
    return std::min(a, b);
  case ReduceKind::unsignedMax:
    return std::max(a, b);
  case ReduceKind::signedMin:
    return std::min(int32_t(a), int32_t(b));
  case ReduceKind::signedMax:
    return std::max(int32_t(a), int32_t(b));
  }
  __builtin_unreachable();
}

uint32_t reduce(uint32_t site, ReduceKind kind, uint32_t mask, uint32_t value) {
  return rendezvous(site, mask, {value, 0, 0}, [&](Thread &last, uint32_t lanes) {
    ++last.block->worker->shuffles;
    const Thread *threads = last.warp->threads;
    uint32_t result = threads[__builtin_ctz(lanes)].operands[0];
    for (uint32_t set = lanes & (lanes - 1); set; set &= set - 1)
      result = combine(kind, result, threads[__builtin_ctz(set)].operands[0]);
    for (uint32_t set = lanes; set; set &= set - 1)
      last.warp->threads[__builtin_ctz(set)].result = result;
  });
}

void warpBarrier(uint32_t site, uint32_t mask) {
  rendezvous(site, mask, {}, [&](Thread &last, uint32_t lanes) {
    ++last.block->worker->warpBarriers;
    if (lanes == last.warp->present) // otherwise it is unknown which accesses it orders
      ++last.warp->barriers;
  });
}

void blockBarrier(uint32_t site) {
  Thread &thread = currentThread();
  machineOf(thread).arriveAtBlock(thread, site);
}

void clusterArrive(uint32_t site) {
  Thread &thread = currentThread();
  machineOf(thread).arriveAtCluster(thread, site);
}

void clusterWait(uint32_t site) {
  Thread &thread = currentThread();
  machineOf(thread).waitForCluster(thread, site);
}

/// Returns the same address in the shared memory of the cluster's block with the given rank.
char *mapToRank(uint32_t site, char *address, uint32_t rank) {
  Thread &thread = currentThread();
  const Block &block = *thread.block;
  if (rank >= block.cluster.size())
    machineOf(thread).fail(thread, "out-of-bounds",
                           "there is no block of rank " + std::to_string(rank) + " in a cluster of " +
                               std::to_string(block.cluster.size()),
                           site);
  return block.cluster[rank]->shared + (address - block.shared);
}

void gridBarrier(uint32_t site) {
  Thread &thread = currentThread();
  machineOf(thread).arriveAtGrid(thread, site);
}

void copyToShared(uint32_t readSite, uint32_t writeSite, char *target, char *source, uint32_t bytes,
                  uint32_t sourceBytes) {
  startCopy(currentThread(), readSite, writeSite, target, source, bytes, sourceBytes);
}

void commit() { commitCopies(currentThread()); }

void waitGroups(uint32_t groups) { waitForCopies(currentThread(), groups); }

void init(uint32_t site, char *address, uint32_t count) { initBarrier(currentThread(), site, address, count); }

void invalidate(uint32_t site, char *address) { invalidateBarrier(currentThread(), site, address); }

void fence() { fenceBarriers(currentThread()); }

void arrive(uint32_t site, char *address, uint32_t bytes) { arriveExpecting(currentThread(), site, address, bytes); }

void copyInBulk(uint32_t readSite, uint32_t writeSite, char *target, char *source, uint32_t bytes, char *barrier) {
  startBulkCopy(currentThread(), readSite, writeSite, target, source, bytes, barrier);
}

void waitPhase(uint32_t site, char *address, uint32_t parity) { waitForPhase(currentThread(), site, address, parity); }

constexpr uint32_t wholeWarp = ~0u;

/// Returns the registers that the lane receives (ldmatrix). Each of the first 8 * `count` lanes gives the address of a
/// row.
uint32_t *loadRows(uint32_t site, uint32_t count, uint32_t transposed, char *address) {
  Thread &thread = currentThread();
  if (thread.lane < 8 * count)
    accessMemory(thread, site, address, machineOf(thread).program.sites[site].bytes);
  thread.registers = address;
  rendezvous(site, wholeWarp, {}, [&](Thread &last, uint32_t) {
    const char *rows[32];
    uint32_t *results[32];
    for (uint32_t lane = 0; lane < 32; ++lane) {
      rows[lane] = static_cast<const char *>(last.warp->threads[lane].registers);
      results[lane] = last.warp->threads[lane].matrices.data();
    }
    loadMatrices(rows, count, transposed, results);
  });
  return thread.matrices.data();
}

void multiply(uint32_t site, MatrixType type, MatrixRegisters *registers) {
  currentThread().registers = registers;
  rendezvous(site, wholeWarp, {}, [&](Thread &last, uint32_t) {
    MatrixRegisters *lanes[32];
    for (uint32_t lane = 0; lane < 32; ++lane)
      lanes[lane] = static_cast<MatrixRegisters *>(last.warp->threads[lane].registers);
    multiplyMatrices(type, lanes);
  });
}

void proxyFence() { fenceProxies(currentThread()); }

void registerFence() { fenceRegisters(currentThread()); }

/// Starts a product of a warpgroup. `shape` holds N in its low 16 bits. Bits 16 and 17 are set if lhs and rhs are
/// contiguous along K, and bit 18 is set if lhs is in registers. The lane's words of lhs then follow the accumulators.
void product(uint32_t site, MatrixType type, uint32_t shape, uint64_t left, uint64_t right, float *accumulators) {
  WarpgroupProduct own{type, shape & 0xffff, (shape >> 16 & 1) != 0, (shape >> 17 & 1) != 0, left, right, accumulators};
  if (shape >> 18 & 1)
    own.lhsWords = reinterpret_cast<const uint32_t *>(accumulators + own.n / 2);
  currentThread().registers = &own;
  rendezvous(site, wholeWarp, {}, [&](Thread &last, uint32_t) {
    WarpgroupProduct *products[32];
    for (uint32_t lane = 0; lane < 32; ++lane)
      products[lane] = static_cast<WarpgroupProduct *>(last.warp->threads[lane].registers);
    startProducts(last, site, products);
  });
}

void commitGroup() { commitProducts(currentThread()); }

void waitProducts(uint32_t groups) { waitForProducts(currentThread(), groups); }

void touch(uint32_t site, uint32_t productSite) { touchAccumulators(currentThread(), site, productSite); }

void trap(uint32_t site) {
  Thread &thread = currentThread();
  machineOf(thread).fail(thread, "trap", "the kernel executes a trap here", site);
}

/// Checks the divisor of an integer division. A division by zero has no result on the device, and would end the host's
/// process.
void divide(uint32_t site, uint64_t divisor) {
  Thread &thread = currentThread();
  if (divisor == 0)
    machineOf(thread).fail(thread, "trap", "an integer is divided by zero", site);
}

void visit(uint32_t basicBlock) {
  Thread &thread = currentThread();
  Machine &machine = machineOf(thread);
  const BasicBlock &block = machine.program.basicBlocks[basicBlock];
  ++thread.warp->visits[basicBlock * 32 + thread.lane];
  thread.fuel -= block.total;
  if (thread.fuel <= 0)
    machine.refuel(thread, block.location);
}

char *shared(uint32_t variable) {
  Thread &thread = currentThread();
  return thread.block->shared + machineOf(thread).layout.places[variable].offset;
}

uint32_t readRegister(uint32_t number) {
  const Thread &thread = currentThread();
  const Machine &machine = machineOf(thread);
  const auto &size = machine.blockSize;
  uint32_t lane = thread.lane;
  switch (Register(number)) {
  case Register::tidX:
    return thread.index % size[0];
  case Register::tidY:
    return thread.index / size[0] % size[1];
  case Register::tidZ:
    return thread.index / size[0] / size[1];
  case Register::ntidX:
  case Register::ntidY:
  case Register::ntidZ:
    return size[number - uint32_t(Register::ntidX)];
  case Register::ctaidX:
  case Register::ctaidY:
  case Register::ctaidZ:
    return thread.block->id[number - uint32_t(Register::ctaidX)];
  case Register::nctaidX:
  case Register::nctaidY:
  case Register::nctaidZ:
    return machine.launch.grid[number - uint32_t(Register::nctaidX)];
  case Register::laneid:
    return lane;
  case Register::warpsize:
    return 32;
  case Register::warpid:
    return thread.index / 32;
  case Register::nwarpid:
    return (machine.numThreads + 31) / 32;
  case Register::lanemaskEq:
    return 1u << lane;
  case Register::lanemaskLt:
    return (1u << lane) - 1;
  case Register::lanemaskLe:
    return (1u << lane) | ((1u << lane) - 1);
  case Register::lanemaskGe:
    return ~((1u << lane) - 1);
  case Register::lanemaskGt:
    return ~((1u << lane) | ((1u << lane) - 1));
  case Register::clusterRank:
    return thread.block->rank;
  case Register::clusterBlocks:
    return thread.block->cluster.size();
  }
  __builtin_unreachable();
}
} // namespace

std::vector<std::pair<const char *, void *>> tilewright::simulator::runtimeFunctions() {
  auto function = [](auto *pointer) { return reinterpret_cast<void *>(pointer); };
  return {
      {runtime::access, function(&tilewright_simulator_access)},
      {runtime::visit, function(&visit)},
      {runtime::shared, function(&shared)},
      {runtime::readRegister, function(&readRegister)},
      {runtime::shuffle, function(&shuffle)},
      {runtime::vote, function(&vote)},
      {runtime::reduce, function(&reduce)},
      {runtime::warpBarrier, function(&warpBarrier)},
      {runtime::blockBarrier, function(&blockBarrier)},
      {runtime::clusterArrive, function(&clusterArrive)},
      {runtime::clusterWait, function(&clusterWait)},
      {runtime::mapToRank, function(&mapToRank)},
      {runtime::gridBarrier, function(&gridBarrier)},
      {runtime::trap, function(&trap)},
      {runtime::divide, function(&divide)},
      {runtime::startCopy, function(&copyToShared)},
      {runtime::commitCopies, function(&commit)},
      {runtime::waitForCopies, function(&waitGroups)},
      {runtime::initBarrier, function(&init)},
      {runtime::invalidateBarrier, function(&invalidate)},
      {runtime::fenceBarriers, function(&fence)},
      {runtime::arriveExpecting, function(&arrive)},
      {runtime::startBulkCopy, function(&copyInBulk)},
      {runtime::waitForPhase, function(&waitPhase)},
      {runtime::loadMatrices, function(&loadRows)},
      {runtime::multiplyMatrices, function(&multiply)},
      {runtime::fenceProxies, function(&proxyFence)},
      {runtime::fenceRegisters, function(&registerFence)},
      {runtime::startProduct, function(&product)},
      {runtime::commitProducts, function(&commitGroup)},
      {runtime::waitForProducts, function(&waitProducts)},
      {runtime::touchAccumulators, function(&touch)},
  };
}
