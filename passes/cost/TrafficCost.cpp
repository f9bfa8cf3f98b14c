// Adds up the work of the groups of a launch, picks the memory level that holds the working set, and divides each
// resource's work by its rate (Chimera eq. 3).
#include "passes/cost/TrafficCost.h"

#include <map>

using namespace llvm;
using namespace tilewright;

/// Bytes per cycle that one SM takes from memory. Measured: 86 SMs of an H200 took about 4.3 TB/s.
static constexpr double kTakenBytes = 32;

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
  double taken = share * target.cores * kTakenBytes * target.gpu.clockHz;
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

  Prediction prediction;
  prediction.bytes = all.globalBytes();
  // Levels work concurrently, and the slowest decides (Chimera eq. 3).
  prediction.seconds = target.launchSeconds +
                       std::max({globalSeconds, computeSeconds, blockSeconds, all.latencySeconds}) + repeatedSeconds +
                       barrierSeconds;
  prediction.terms = {{"bytes", "B", prediction.bytes},
                      {"seconds", "s", prediction.seconds},
                      {"input bytes", "B", all.inputBytes},
                      {"output bytes", "B", all.outputBytes},
                      {"block bytes", "B", all.blockBytes},
                      {"launch", "s", target.launchSeconds},
                      {global.name + " traffic", "s", globalSeconds},
                      {block.name + " traffic", "s", blockSeconds},
                      {"arithmetic", "s", computeSeconds},
                      {"repeated bytes", "B", all.repeatedBytes},
                      {"repeated traffic", "s", repeatedSeconds},
                      {"barriers", "s", barrierSeconds},
                      {"workgroups", "1", static_cast<double>(all.workgroups)}};
  if (all.latencySeconds > 0)
    prediction.terms.push_back({"latency", "s", all.latencySeconds});
  return prediction;
}

Prediction tilewright::predictPhases(ArrayRef<std::vector<GroupWork>> phases, const Target &target) {
  Prediction all = predictKernel(phases.front(), target);
  if (phases.size() == 1)
    return all;
  double barriers = (phases.size() - 1) * target.gpu.gridBarrierSeconds;
  auto add = [&](StringRef name, StringRef unit, double value) {
    auto known = find_if(all.terms, [&](const CostTerm &term) { return term.name == name; });
    if (known == all.terms.end())
      all.terms.push_back({name.str(), unit.str(), value});
    else
      known->value = name == "workgroups" ? std::max(known->value, value) : known->value + value;
  };
  for (ArrayRef<GroupWork> phase : phases.drop_front())
    for (const CostTerm &term : predictKernel(phase, target).terms)
      if (term.name != "launch")
        add(term.name, term.unit, term.name == "seconds" ? term.value - target.launchSeconds : term.value);
  add("seconds", "s", barriers);
  add("grid barriers", "s", barriers);
  all.bytes = all.terms[0].value; // these two terms come first
  all.seconds = all.terms[1].value;
  return all;
}

std::string tilewright::boundOf(ArrayRef<CostTerm> terms, const Target &target) {
  std::map<std::string, double> seconds;
  for (const CostTerm &term : terms) {
    StringRef name = term.name;
    if (name == "arithmetic" || name == "latency")
      seconds[term.name] += term.value;
    else if (name == "repeated traffic")
      seconds[target.level(tile::Space::global).name] += term.value;
    else if (name.consume_back(" traffic"))
      seconds[name.str()] += term.value;
  }
  auto longest = llvm::max_element(seconds, [](auto &a, auto &b) { return a.second < b.second; });
  return longest == seconds.end() ? "" : longest->first;
}
