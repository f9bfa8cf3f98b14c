#include "passes/plan/grid/ResizedGroups.h"

#include "passes/backend/Backend.h"
#include "passes/plan/tiling/TileSizes.h"
#include "passes/plan/tiling/gpu/ContractionBlocks.h"

using namespace mlir;
using namespace tilewright;

std::optional<PlannedGroup> tilewright::inBlocks(const GridContext &context, unsigned part,
                                                 const BlockCandidate &block) {
  PlannedGroup shaped = context.part(part);
  if (!takeBlock(context.graph, shaped.choice, context.target, shaped.space, block).empty())
    return std::nullopt;
  shaped.work = workOf(context.graph, shaped.space, context.target);
  shaped.predicted = estimate(shaped.work, context.target);
  return shaped;
}

/// Returns the seconds of a contraction in at most `most` blocks, each of which then computes several tiles one after
/// another.
static double secondsInBlocks(const GridContext &context, IterationSpace space, const BlockCandidate &block,
                              int64_t most, int64_t resident) {
  block.applyTo(space);
  double blocks = static_cast<double>(std::min(block.work.blocks, most));
  return contractionSeconds(context.graph, context.target, std::move(space), block.threads, blocks,
                            static_cast<double>(resident));
}

/// Returns the fastest block of each size and number of resident blocks, in the order of the candidates.
static std::vector<BlockCandidate> quickestOfEachSize(ArrayRef<BlockCandidate> candidates) {
  std::map<std::pair<int64_t, int64_t>, size_t> quickest;
  for (auto [number, block] : llvm::enumerate(candidates)) {
    auto [known, isNew] = quickest.try_emplace({block.threads, block.latency.residentBlocks}, number);
    if (!isNew && block.latency.seconds < candidates[known->second].latency.seconds)
      known->second = number;
  }
  auto numbers = llvm::to_vector(llvm::make_second_range(quickest));
  llvm::sort(numbers);
  std::vector<BlockCandidate> blocks;
  for (size_t number : numbers)
    blocks.push_back(candidates[number]);
  return blocks;
}

namespace {
/// The blocks of the first group with contractions that has a signature, whatever size is asked for.
struct FirstBlocks {
  std::vector<BlockCandidate> quickest;
};
} // namespace

/// Returns the blocks from which to choose one of a size. `group` is the key of the group and its choices.
static std::vector<BlockCandidate> blocksOfSizes(const GridContext &context, unsigned part, const MemoKey &group,
                                                 int64_t most) {
  const PlannedGroup &planned = context.part(part);
  auto all = [&] { return blockCandidates(context.graph, planned.choice, context.target, planned.space); };
  if (!context.contracts(part) || most > 0)
    return all(); // they are timed again
  const FirstBlocks *first = context.groups.memo().find<FirstBlocks>(group);
  if (!first)
    first = &context.groups.memo().keep<FirstBlocks>(group, {quickestOfEachSize(all())});
  return first->quickest;
}

/// Returns the fastest block of this size. Blocks of contractions come with their times, which the evaluator cannot
/// predict; other blocks are evaluated again.
static std::optional<BlockCandidate> quickestBlock(const GridContext &context, unsigned part, const MemoKey &group,
                                                   int64_t threads, int64_t resident, int64_t most) {
  const PlannedGroup &planned = context.part(part);
  std::vector<BlockCandidate> blocks = blocksOfSizes(context, part, group, most);
  llvm::erase_if(blocks, [&](const BlockCandidate &block) {
    return block.threads != threads || block.latency.residentBlocks < resident;
  });
  if (context.contracts(part)) {
    if (most > 0)
      for (BlockCandidate &block : blocks)
        block.latency.seconds = secondsInBlocks(context, planned.space, block, most, resident);
    auto quickest = llvm::min_element(
        blocks, [](const BlockCandidate &a, const BlockCandidate &b) { return a.latency.seconds < b.latency.seconds; });
    return quickest == blocks.end() ? std::nullopt : std::optional(*quickest);
  }
  for (BlockCandidate &block : blocks) {
    block.work.mostResident = resident;
    block.latency = blockLatency(block.work, context.target);
  }
  int64_t best = bestBlock(blocks, context.target);
  return best < 0 ? std::nullopt : std::optional(blocks[best]);
}

namespace {
/// The fastest blocks of the first group with a signature.
struct FirstResized {
  GroupFrame frame;
  std::optional<PlannedGroup> resized;
};
} // namespace

std::optional<PlannedGroup> tilewright::resizedGroup(const GridContext &context, unsigned part, int64_t threads,
                                                     int64_t resident, int64_t most) {
  const PlannedGroup &group = context.part(part);
  GroupFrame frame;
  MemoKey key = context.groups.signatureOf(group.choice.exprs, frame);
  appendChoices(key, frame, group);
  MemoKey ofGroup = key;
  key.append({threads, resident, most});
  const FirstResized *first = context.groups.memo().find<FirstResized>(key);
  if (!first) {
    std::optional<BlockCandidate> block = quickestBlock(context, part, ofGroup, threads, resident, most);
    first = &context.groups.memo().keep<FirstResized>(std::move(key),
                                                      {frame, block ? inBlocks(context, part, *block) : std::nullopt});
  }
  if (!first->resized)
    return std::nullopt;
  PlannedGroup resized = rebase(*first->resized, first->frame, frame);
  resized.edges = group.edges;
  resized.apartSeconds = group.apartSeconds;
  return resized;
}
