#include "passes/plan/tiling/gpu/BlockShapes.h"
#include "passes/cost/Clusters.h"
#include "passes/cost/Confidence.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tilewright;

StringRef tilewright::stringify(Composition composition) {
  switch (composition) {
  case Composition::thread:
    return "thread composition";
  case Composition::warp:
    return "warp composition";
  case Composition::block:
    return "block composition";
  case Composition::columns:
    return "columns";
  case Composition::points:
    return "points";
  case Composition::contraction:
    return "contraction";
  }
  llvm_unreachable("a composition");
}

void BlockCandidate::print(llvm::raw_ostream &os) const {
  os << stringify(composition) << ", " << work.blocks << " blocks of " << threads << " threads";
  if (group > 0)
    os << ", " << group << " a row";
  if (cluster > 1)
    os << ", " << cluster << " a cluster";
  if (kSlices > 1)
    os << ", " << kSlices << " slices of K";
  os << ", tiles [";
  llvm::interleaveComma(tiles, os);
  os << "]: ";
  if (!discarded.empty()) {
    os << "discarded, " << discarded;
    return;
  }
  auto resident = [&] {
    os << latency.residentBlocks << " blocks resident by " << work.registers << " registers and " << work.sharedBytes
       << " bytes of shared memory, ";
  };
  if (composition == Composition::contraction) {
    os << llvm::format("%.2f us, %.0f waves, ", latency.seconds * 1e6, latency.waves);
    resident();
    os << llvm::format("%.3g MB requested of L2", work.movedBytes / 1e6);
    return;
  }
  os << llvm::format("%.2f us, %.0f waves x %.0f cycles a warp, ", latency.seconds * 1e6, latency.waves,
                     latency.warpCycles);
  resident();
  os << llvm::format("%.0f%% of the bandwidth, ", 100 * latency.inFlight)
     << llvm::format("%.3g MB moved", work.movedBytes / 1e6);
}

void BlockCandidate::applyTo(IterationSpace &space) const {
  space.tiles = tiles;
  space.threads = threads;
  space.group = group;
  space.kSlices = kSlices;
  space.cluster = cluster;
  if (block)
    space.block = *block;
  if (!discarded.empty())
    return;
  space.latencySeconds = latency.seconds;
  space.blockWork = work;
}

static int64_t quickestBlock(ArrayRef<BlockCandidate> candidates, const Target &target) {
  int64_t best = -1;
  for (auto [i, candidate] : llvm::enumerate(candidates))
    if (candidate.discarded.empty() &&
        (best < 0 ||
         isFaster(candidate.latency.seconds, candidates[best].latency.seconds, target.costs.confidence.tilings)))
      best = i;
  return best;
}

/// Returns true if rows of a warp conflict in banks of shared memory.
static bool conflicts(const BlockCandidate &candidate) {
  return llvm::any_of(candidate.work.nests, [](const NestWork &nest) { return nest.sharedPasses > 1; });
}

static double kernelSeconds(const BlockCandidate &candidate, const Target &target) {
  return target.launchSeconds + candidate.latency.seconds;
}

/// Returns the fastest candidate without bank conflicts that moves no more than `chosen`, if it is hardly slower, else
/// `chosen`.
static int64_t withoutConflicts(ArrayRef<BlockCandidate> candidates, int64_t chosen, const Target &target) {
  if (!conflicts(candidates[chosen]))
    return chosen;
  const BlockCandidate &before = candidates[chosen];
  double bytes = std::max(before.work.movedBytes, target.costs.gpu.hardlyRepeated * before.work.bytes);
  double least = kernelSeconds(before, target), most = std::numeric_limits<double>::infinity();
  int64_t best = chosen;
  for (auto [i, candidate] : llvm::enumerate(candidates)) {
    double seconds = kernelSeconds(candidate, target);
    if (!candidate.discarded.empty() || conflicts(candidate) || candidate.work.movedBytes > bytes || seconds >= most ||
        isFaster(least, seconds, target.costs.confidence.forms))
      continue;
    best = i;
    most = seconds;
  }
  return best;
}

int64_t tilewright::bestBlock(ArrayRef<BlockCandidate> candidates, const Target &target) {
  if (!candidates.empty() && candidates.front().composition == Composition::contraction)
    return 0;
  int64_t best = quickestBlock(candidates, target);
  if (best < 0)
    return best;
  double least = kernelSeconds(candidates[best], target), hardly = target.costs.gpu.hardlyRepeated;
  const ConfidenceCosts &confidence = target.costs.confidence;
  for (auto [i, candidate] : llvm::enumerate(candidates)) {
    const BlockWork &work = candidate.work, &before = candidates[best].work;
    if (!candidate.discarded.empty())
      continue;
    // Moving a few bytes more than once is tolerated: among such candidates the fastest is taken.
    bool once = work.movedBytes <= hardly * work.bytes;
    bool isOnce = before.movedBytes <= hardly * work.bytes;
    bool quicker = isFaster(candidate.latency.seconds, candidates[best].latency.seconds, confidence.tilings);
    bool better = once ? !isOnce || quicker : !isOnce && work.movedBytes <= (1 - confidence.bytes) * before.movedBytes;
    if (better && !isFaster(least, kernelSeconds(candidate, target), once ? confidence.kernels : confidence.tilings))
      best = i;
  }
  return withoutConflicts(candidates, best, target);
}

std::string tilewright::chooseBlockShape(const TensorGraph &graph, const Target &target, IterationSpace &space,
                                         llvm::function_ref<int64_t()> footprint) {
  std::vector<BlockCandidate> candidates = enumerateBlocks(graph, target, space, footprint);
  int64_t best = bestBlock(candidates, target);
  // If no memory is enough for any, the group is refused later, with the bytes of the smallest candidate.
  const BlockCandidate &chosen = best >= 0 ? candidates[best] : *llvm::min_element(candidates, [](auto &a, auto &b) {
    return std::pair(a.threads, -a.group) < std::pair(b.threads, -b.group);
  });
  chosen.applyTo(space);
  return best >= 0 || footprint() > target.blockBytes ? "" : chosen.discarded;
}
