// Adds up the work of the groups of a launch, picks the memory level that holds the working set, and divides each
// resource's work by its rate (Chimera eq. 3).
#include "passes/cost/TrafficCost.h"

#include <map>

using namespace llvm;
using namespace tilewright;

/// Returns the innermost level of a space that holds `bytes`: data just produced is still there, and larger data
/// streams from further out.
static const MemoryLevel &levelFor(const Target &target, tile::Space space, double bytes) {
  for (const MemoryLevel &level : target.levels)
    if (level.space == space && level.capacityBytes > 0 && bytes <= static_cast<double>(level.capacityBytes))
      return level;
  return target.level(space);
}

/// Operations per second; flopsPerSecond counts a fused multiply-add as two.
static double operationsPerSecond(const Target &target) { return target.flopsPerSecond / 2; }

Prediction tilewright::predictKernel(ArrayRef<GroupWork> parts, const Target &target, double workingSetBytes) {
  GroupWork all;
  all.workgroups = 0;
  for (const GroupWork &part : parts) {
    all.inputBytes += part.inputBytes;
    all.outputBytes += part.outputBytes;
    all.repeatedBytes += part.repeatedBytes;
    all.blockBytes += part.blockBytes;
    all.footprintBytes = std::max(all.footprintBytes, part.footprintBytes);
    all.arithmetic += part.arithmetic;
    all.special += part.special;
    all.barriers = std::max(all.barriers, part.barriers);
    all.workgroups += part.workgroups;
    all.latencySeconds = std::max(all.latencySeconds, part.latencySeconds);
  }
  double share = std::min(1.0, static_cast<double>(std::max<int64_t>(1, all.workgroups)) / target.cores);
  // A group that is alone in its kernel and has few tiles leaves cores idle in its last round.
  if (parts.size() == 1 && parts[0].tiles > 0)
    share = std::min(share, parts[0].filled * static_cast<double>(parts[0].tiles) /
                                (llvm::divideCeil(parts[0].tiles, target.cores) * target.cores));
  const MemoryLevel &global = levelFor(target, tile::Space::global, std::max(workingSetBytes, all.globalBytes()));
  const MemoryLevel &block = levelFor(target, tile::Space::block, all.footprintBytes);
  // Each core of a CPU has its share of the bandwidth; two thirds of an H200's SMs saturate it.
  double taken = share * target.cores * target.costs.gpu.smBytes * target.gpu.clockHz;
  double bandwidth = taken > 0 ? std::min(global.bandwidth, taken) : share * global.bandwidth;
  double globalSeconds = all.globalBytes() / bandwidth;
  double blockSeconds = all.blockBytes / block.bandwidth / share;
  double computeSeconds =
      (all.arithmetic / operationsPerSecond(target) + all.special / target.specialPerSecond) / share;
  // Weights of other kernels come in between, so a shared cache does not keep this kernel's, and every tile starts
  // prefetching anew. Measured: BERT's layers on two cores of a Zen 5 server take the sum of both times, not the longer
  // one.
  double repeatedSeconds = all.repeatedBytes / target.level(tile::Space::global).bandwidth / share;
  double barrierSeconds = all.barriers * target.barrierSeconds;
  // A thread of a CPU waits for a part of what it reads and writes; the blocks of an SM wait in turn.
  double exposed = target.traits.threadBlocks ? 0 : target.costs.cpu.exposedTraffic;
  double exposedSeconds = exposed * std::min(globalSeconds, std::max(computeSeconds, blockSeconds));

  Prediction prediction;
  prediction.bytes = all.globalBytes();
  // Levels work concurrently, and the slowest decides (Chimera eq. 3), but for what is exposed.
  prediction.seconds = target.launchSeconds +
                       std::max({globalSeconds, computeSeconds, blockSeconds, all.latencySeconds}) + exposedSeconds +
                       repeatedSeconds + barrierSeconds;
  prediction.inputBytes = all.inputBytes;
  prediction.outputBytes = all.outputBytes;
  prediction.blockBytes = all.blockBytes;
  prediction.repeatedBytes = all.repeatedBytes;
  prediction.launchSeconds = target.launchSeconds;
  prediction.arithmeticSeconds = computeSeconds;
  prediction.barrierSeconds = barrierSeconds;
  prediction.repeatedSeconds = repeatedSeconds;
  prediction.exposedSeconds = exposedSeconds;
  prediction.latencySeconds = all.latencySeconds;
  prediction.traffic = {{global.name, globalSeconds}, {block.name, blockSeconds}};
  prediction.workgroups = all.workgroups;
  return prediction;
}

/// Adds a phase that follows in the same launch.
static void addPhase(Prediction &all, const Prediction &phase) {
  for (double Prediction::*field :
       {&Prediction::bytes, &Prediction::inputBytes, &Prediction::outputBytes, &Prediction::blockBytes,
        &Prediction::repeatedBytes, &Prediction::arithmeticSeconds, &Prediction::barrierSeconds,
        &Prediction::repeatedSeconds, &Prediction::exposedSeconds, &Prediction::latencySeconds})
    all.*field += phase.*field;
  all.seconds += phase.seconds - phase.launchSeconds;
  all.workgroups = std::max(all.workgroups, phase.workgroups);
  for (const ResourceSeconds &level : phase.traffic) {
    auto known = find_if(all.traffic, [&](const ResourceSeconds &other) { return other.resource == level.resource; });
    if (known == all.traffic.end())
      all.traffic.push_back(level);
    else
      known->seconds += level.seconds;
  }
}

Prediction tilewright::predictPhases(ArrayRef<std::vector<GroupWork>> phases, const Target &target) {
  Prediction all = predictKernel(phases.front(), target);
  for (ArrayRef<GroupWork> phase : phases.drop_front())
    addPhase(all, predictKernel(phase, target));
  all.gridBarrierSeconds = (phases.size() - 1) * target.gpu.gridBarrierSeconds;
  all.seconds += all.gridBarrierSeconds;
  return all;
}

std::vector<CostTerm> Prediction::terms() const {
  using tile::Unit;
  auto levels = map_to_vector(traffic, [](const ResourceSeconds &level) {
    return CostTerm{level.resource + " traffic", Unit::seconds, level.seconds};
  });
  std::vector<CostTerm> terms = {{"bytes", Unit::bytes, bytes},
                                 {"seconds", Unit::seconds, seconds},
                                 {"input bytes", Unit::bytes, inputBytes},
                                 {"output bytes", Unit::bytes, outputBytes},
                                 {"block bytes", Unit::bytes, blockBytes},
                                 {"launch", Unit::seconds, launchSeconds}};
  auto own = ArrayRef<CostTerm>(levels).take_front(2); // of a kernel's own phase; a backend may count fewer
  append_range(terms, own);
  terms.insert(terms.end(), {{"arithmetic", Unit::seconds, arithmeticSeconds},
                             {"repeated bytes", Unit::bytes, repeatedBytes},
                             {"repeated traffic", Unit::seconds, repeatedSeconds},
                             {"barriers", Unit::seconds, barrierSeconds},
                             {"workgroups", Unit::one, static_cast<double>(workgroups)}});
  if (exposedSeconds > 0)
    terms.push_back({"exposed traffic", Unit::seconds, exposedSeconds});
  if (latencySeconds > 0)
    terms.push_back({"latency", Unit::seconds, latencySeconds});
  append_range(terms, ArrayRef<CostTerm>(levels).drop_front(own.size()));
  if (gridBarrierSeconds > 0)
    terms.push_back({"grid barriers", Unit::seconds, gridBarrierSeconds});
  return terms;
}

std::vector<ResourceSeconds> Prediction::resources(const Target &target) const {
  std::vector<ResourceSeconds> all(traffic.begin(), traffic.end());
  all.push_back({kArithmetic.str(), arithmeticSeconds});
  all.push_back({target.level(tile::Space::global).name, repeatedSeconds});
  if (latencySeconds > 0)
    all.push_back({kLatency.str(), latencySeconds});
  return all;
}

std::string tilewright::boundOf(ArrayRef<ResourceSeconds> resources) {
  std::map<std::string, double> seconds;
  for (const ResourceSeconds &one : resources)
    seconds[one.resource] += one.seconds;
  auto longest = llvm::max_element(seconds, [](auto &a, auto &b) { return a.second < b.second; });
  return longest == seconds.end() ? "" : longest->first;
}
