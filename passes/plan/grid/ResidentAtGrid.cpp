#include "passes/plan/grid/ResidentAtGrid.h"

#include "passes/cost/Confidence.h"
#include "passes/plan/grid/ResidentTiles.h"
#include "passes/plan/grid/ResizedGroups.h"
#include "passes/plan/tiling/TileSizes.h"
#include "passes/support/BestFit.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// Alignment of a resident tile in bytes, which also keeps the tensor's alignment modulo a vector.
constexpr int64_t kResidentTilePadding = kBufferAlignment;

/// Two groups of a kernel, and the inputs that blocks of the first may keep resident for the second.
struct ReusingPair {
  unsigned writer, reader; ///< indices into the kernel's groups; the writer reads the inputs first
  std::vector<CommonInput> inputs;
};

/// The two groups in blocks that read the same tiles.
struct AlikeGroups {
  PlannedGroup writer, reader;
};
} // namespace

/// Plans both groups with this block for the writer. Returns nothing if some blocks could not keep their tile.
static std::optional<AlikeGroups> inTilesAlike(const GridContext &context, unsigned writer, unsigned reader,
                                               CommonInput input, const BlockCandidate &block) {
  if (!block.discarded.empty() || block.cluster > 1)
    return std::nullopt;
  const PlannedGroup &second = context.part(reader);
  std::optional<PlannedGroup> writing = inBlocks(context, writer, block);
  std::optional<std::vector<int64_t>> tiles =
      writing ? tilesAlike(context.graph, writing->space, second.space, input) : std::nullopt;
  std::optional<BlockCandidate> alike =
      tiles ? blockOfTiles(context.graph, second.choice, context.target, second.space, *tiles, block.threads)
            : std::nullopt;
  std::optional<PlannedGroup> reading =
      alike && alike->discarded.empty() ? inBlocks(context, reader, *alike) : std::nullopt;
  return reading ? std::optional(AlikeGroups{std::move(*writing), std::move(*reading)}) : std::nullopt;
}

/// Predicts that blocks of the space read the input from shared memory.
static void readFromBlock(IterationSpace &space, Value input, double bytes) {
  BlockWork &work = space.blockWork;
  work.bytes -= bytes;
  work.movedBytes = std::max(work.bytes, work.movedBytes - bytes);
  unsigned nest = space.readingNests(input).front();
  for (const GroupRoot &root : space.roots)
    for (const RootAccess &access : root.accesses)
      if (root.nest == nest && access.tensor == input) {
        work.nests[nest].globalLoads -= 1;
        work.nests[nest].sharedLoads += 1;
      }
}

/// Returns the inputs whose tiles are the same in both groups.
static std::vector<ResidentTile> residentInputs(const GridContext &context, ArrayRef<unsigned> parts,
                                                const ReusingPair &pair, const AlikeGroups &alike) {
  std::vector<ResidentTile> residentInputs;
  for (CommonInput input : pair.inputs) {
    Value written = alike.writer.space.inputs[input.writerInput], read = alike.reader.space.inputs[input.readerInput];
    if (!whyNotAlike(context.graph, alike.writer.space, written, alike.reader.space, read).empty())
      continue;
    int64_t bytes = llvm::divideCeil(tensorBytes(read), alike.writer.space.numTiles());
    residentInputs.push_back({parts[pair.writer], input.writerInput, parts[pair.reader], input.readerInput, bytes});
  }
  return residentInputs;
}

/// Predicts that the reader reads the input from shared memory. Returns the bytes that a block keeps. Tiles that the
/// writer does not already buffer for its own nests are added to its shared memory.
static int64_t keepInput(const ResidentTile &resident, PlannedGroup &writer, PlannedGroup &reader) {
  Value written = writer.space.inputs[resident.writerInput], read = reader.space.inputs[resident.readerInput];
  double all = tensorBytes(read);
  int64_t placed = llvm::alignTo(resident.bytes + kResidentTilePadding, kResidentTilePadding);
  bool holds = llvm::is_contained(writer.space.tileStaged, written);
  writer.space.blockWork.sharedBytes += holds ? kResidentTilePadding : placed;
  writer.work.blockBytes += holds ? 0 : all;
  reader.work.inputBytes -= all;
  reader.work.blockBytes += all;
  readFromBlock(reader.space, read, all);
  return placed;
}

/// Returns true if both groups are the first of their phases. A block finds its tile by its own number, so this is
/// required.
static bool areFirst(const GridKernel &kernel, const ReusingPair &pair) {
  return llvm::all_of(ArrayRef({pair.writer, pair.reader}), [&](unsigned stage) {
    return llvm::any_of(kernel.phases, [&](ArrayRef<GridShare> phase) { return phase.front().stage == stage; });
  });
}

/// Plans the kernel with this block for the writer. Returns nothing if some blocks could not keep their tile, or if not
/// all are resident.
static std::optional<PlannedKernel> kernelThatKeeps(const GridContext &context, ArrayRef<unsigned> parts,
                                                    const ReusingPair &pair, const BlockCandidate &block) {
  std::optional<AlikeGroups> alike =
      inTilesAlike(context, parts[pair.writer], parts[pair.reader], pair.inputs.front(), block);
  if (!alike)
    return std::nullopt;
  StagedKernel kernel{SmallVector<unsigned>(parts), {}, {}, {}};
  std::vector<ResidentTile> inputs = residentInputs(context, parts, pair, *alike);
  int64_t residentBytes = 0;
  for (const ResidentTile &resident : inputs)
    residentBytes += keepInput(resident, alike->writer, alike->reader);
  for (auto [place, own] : llvm::enumerate(parts)) {
    bool writes = place == pair.writer, reads = place == pair.reader;
    std::optional<PlannedGroup> planned = writes  ? alike->writer
                                          : reads ? alike->reader
                                                  : resizedGroup(context, own, block.threads, /*resident=*/0);
    if (!planned)
      return std::nullopt;
    GridStage &stage = kernel.stages.emplace_back(*stageOf(context, own, parts, planned->space, block.threads));
    stage.work.sharedBytes += writes ? 0 : residentBytes; // the writer's stage already counts them
    stage.walks &= !writes && !reads;
    kernel.planned.push_back(std::move(*planned));
  }
  std::optional<GridKernel> grid = joinStages(context, kernel.stages);
  if (!grid || !areFirst(*grid, pair))
    return std::nullopt;
  kernel.grid = std::move(*grid);
  return finish(context, kernel, std::move(inputs));
}

static std::vector<ReusingPair> pairsThatMayKeep(const GridContext &context, ArrayRef<unsigned> parts) {
  std::vector<ReusingPair> pairs;
  for (unsigned writer = 0; writer < parts.size(); ++writer)
    for (unsigned reader = writer + 1; reader < parts.size(); ++reader) {
      std::vector<CommonInput> inputs =
          commonInputs(context.part(parts[writer]).space, context.part(parts[reader]).space);
      if (!inputs.empty())
        pairs.push_back({writer, reader, std::move(inputs)});
    }
  return pairs;
}

std::optional<PlannedKernel> tilewright::keepTiles(const GridContext &context, ArrayRef<unsigned> parts) {
  if (parts.size() < 2 || context.anyContracts(parts)) // contractions read their operands in steps
    return std::nullopt;
  double least = leastFaster(predictedSeconds(context, parts), context.target.costs.confidence.tilings);
  std::optional<PlannedKernel> best;
  for (const ReusingPair &pair : pairsThatMayKeep(context, parts)) {
    const PlannedGroup &writer = context.part(parts[pair.writer]);
    for (const BlockCandidate &block : blockCandidates(context.graph, writer.choice, context.target, writer.space)) {
      std::optional<PlannedKernel> kernel = kernelThatKeeps(context, parts, pair, block);
      if (!kernel || kernel->seconds >= least)
        continue;
      least = kernel->seconds;
      best = std::move(kernel);
    }
  }
  return best;
}
