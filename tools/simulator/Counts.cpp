// Combines the counts of lanes, warps and host threads for the report.
#include "tools/simulator/Machine.h"

using namespace tilewright::simulator;

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

static void add(Report &report, const DeviceProgram &program, const Worker &worker) {
  for (size_t index = 0; index < program.basicBlocks.size(); ++index) {
    const BasicBlock &block = program.basicBlocks[index];
    const Visits &visits = worker.visits[index];
    report.threadInstructions += visits.threads * block.total;
    report.warpInstructions += visits.warps * block.total;
    report.blockVisits += visits.warps;
    report.divergentBlockVisits += visits.divergent;
    for (unsigned kind = 0; kind < numInstructionClasses; ++kind)
      report.instructions[kind] += visits.warps * block.instructions[kind];
  }
  for (size_t index = 0; index < report.bindings.size(); ++index) {
    report.bindings[index].sectorsRead += worker.regions[index].sectorsRead;
    report.bindings[index].sectorsWritten += worker.regions[index].sectorsWritten;
  }
  report.warpBarriers += worker.warpBarriers;
  report.blockBarriers += worker.blockBarriers;
  report.clusterBarriers += worker.clusterBarriers;
  report.gridBarriers += worker.gridBarriers;
  report.shuffles += worker.shuffles;
}

void Machine::fill(Report &report) {
  report.kernel = program.kernel;
  report.device = launch.device.name;
  report.blocks = numBlocks;
  report.threadsPerBlock = numThreads;
  report.sharedBytesPerBlock = layout.usedBytes;
  report.bindings.resize(launch.bindings.size());
  std::vector<AccessCounts> sites(program.sites.size());
  for (std::unique_ptr<Worker> &worker : workers) {
    add(report, program, *worker);
    for (size_t index = 0; index < sites.size(); ++index)
      sites[index].add(worker->sites[index]);
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
    report.sites.push_back({site.operation, site.location, shared ? "shared" : "global", accessName(site.kind),
                            site.isInMainLoop, sites[index]});
  }
  for (size_t index = 0; index < report.bindings.size(); ++index)
    if (launch.bindings[index].empty)
      report.bindings[index].bytesNeverWritten =
          std::min(launch.bindings[index].bytes, memory.regions[index].shadow->neverWritten() * granule);
  L2Cache own(launch.device.l2Bytes), &cache = launch.l2 ? *launch.l2 : own;
  cache.beginKernel();
  if (failed) {
    report.faults.push_back(fault);
    return;
  }
  uint64_t perMultiprocessor = launch.device.threadsPerMultiprocessor / std::max(1u, numThreads);
  if (layout.usedBytes > 0)
    perMultiprocessor = std::min(perMultiprocessor, launch.device.sharedBytes / layout.usedBytes);
  replay(traces, launch.device.multiprocessors * std::max<uint64_t>(1, perMultiprocessor), cache);
  own.flush(); // the owner of a cache that outlives the launch flushes it
  report.dramBytesRead = cache.kernels.back().bytesRead;
  report.dramBytesWritten = cache.kernels.back().bytesWritten;
}
