#include "passes/plan/tiling/gpu/ContractionBlocks.h"

#include "passes/cost/Confidence.h"
#include "passes/plan/space/SharedRows.h"
#include "passes/plan/space/TileGrowth.h"
#include "passes/plan/tiling/gpu/BlockContractions.h"

using namespace mlir;
using namespace tilewright;

namespace {
// Bounds of the search, chosen by hand. They keep planning short and are the same on every GPU; which of the blocks
// within them is taken follows from predictions.
constexpr int64_t kMostTile = 256, kLeastN = 16;    ///< elements of a tile along M or N
constexpr int64_t kMostKSlices = 8, kFewM = 64;     ///< slices of K; rows up to which K is sliced in any case
constexpr int64_t kThreads[] = {256, 128, 64, 512}; ///< threads per block; earlier ones win ties
constexpr int64_t kMostThreads = 256;               ///< threads per block, unless rows must be whole in a block
constexpr size_t kMostTiles = 96;                   ///< number of tiles whose time is predicted

class BlockChooser {
public:
  BlockChooser(const TensorGraph &graph, const Target &target, IterationSpace &space, int64_t walked,
               llvm::function_ref<int64_t()> footprint)
      : graph(graph), target(target), space(space), walked(walked),
        contractions(graph, target, space, walked, footprint) {}

  OrDeclined<std::vector<BlockCandidate>> search() {
    if (std::string why = contractions.collect(); !why.empty())
      return Declined{why, "other operands"};
    space.group = 0;
    space.threads = std::max(space.threads, kThreads[0]); // marks the space as one of a GPU until a block is chosen
    tryTiles();
    if (contractions.haveRowsForWarpgroups() && contractions.takeWarpgroups())
      tryTiles();
    if (!found.empty())
      return ranked();
    StringRef why = contractions.reason();
    return Declined{(why.empty() ? "no tile of its contractions fits a block" : why).str(), "a larger block"};
  }

private:
  bool isGrid(int64_t dim) const { return llvm::is_contained(space.grid, dim); }

  void tryTiles() {
    const BlockContraction &first = contractions.all().front();
    space.block = first.kernel.block;
    space.speed = first.kernel.speed;
    SmallVector<int64_t> blocks = walkedSizes(), m = sizesOf(first.m, leastM()), n = sizesOf(first.n, kLeastN);
    auto setTiles = [&](TilePlace place) {
      if (walked >= 0)
        space.tiles[walked] = blocks[place[0]];
      setTile(first.m, m[place[1]]);
      setTile(first.n, n[place[2]]);
    };
    growTiles(
        {blocks.size(), m.size(), n.size()}, kMostTiles,
        [&](TilePlace place) {
          setTiles(place);
          return contractions.bytesOfBlocks();
        },
        [&](TilePlace place) {
          setTiles(place);
          return considerTile();
        });
  }

  /// Returns true if blocks exchange results of rows with the present tiles, and so wait for each other.
  bool waits() const { return rowExchanges(graph, space) > 0; }

  /// Returns the largest number of K slices. K is sliced only if the contractions have no other nests that would wait
  /// for the result, unless blocks wait for each other anyway, and if they have few accumulators. With many, warps have
  /// enough work each, and the epilogue of the accumulators would run on one slice's warps only.
  int64_t mostKSlices() const {
    auto mayShare = [&](const BlockContraction &contraction) {
      int64_t m = contraction.m < 0 ? 1 : space.extents[contraction.m], n = space.extents[contraction.n];
      return !contraction.inOrder && (m <= kFewM || m * n <= static_cast<int64_t>(target.cores) * kMostThreads);
    };
    return (contractions.readsBufferedResults() && !waits()) || isOfWarpgroup(space.block) ||
                   !llvm::all_of(contractions.all(), mayShare)
               ? 1
               : kMostKSlices;
  }

  /// Returns the smallest tile of M, since warps multiply a whole register block of rows in any case.
  int64_t leastM() const {
    const MicroKernel &kernel = contractions.all().front().kernel;
    return kernel.unit == StepUnit::thread ? 1 : kernel.block.rows;
  }

  /// Returns the sizes of the walked dim: blocks, or the whole dim.
  SmallVector<int64_t> walkedSizes() const {
    if (walked < 0)
      return {1};
    SmallVector<int64_t> sizes;
    for (int64_t size : {32, 64, 128})
      if (size < space.extents[walked])
        sizes.push_back(size);
    sizes.push_back(space.extents[walked]);
    return sizes;
  }

  SmallVector<int64_t> sizesOf(int64_t place, int64_t least) const {
    if (place < 0)
      return {1};
    int64_t extent = space.extents[place];
    if (!isGrid(place))
      return {extent};
    SmallVector<int64_t> sizes;
    for (int64_t size = std::max<int64_t>(least, 1); size <= kMostTile; size *= 2) {
      sizes.push_back(std::min(size, extent));
      if (size >= extent)
        break;
    }
    return sizes;
  }

  void setTile(int64_t place, int64_t size) {
    if (place >= 0 && isGrid(place))
      space.tiles[place] = size;
  }

  /// Evaluates the present tiles with all numbers of threads. Larger tiles have more accumulators and take more shared
  /// memory.
  VisitedTile considerTile() {
    VisitedTile tile{false, std::numeric_limits<double>::infinity()};
    int64_t slices = mostKSlices();
    for (int64_t threads : kThreads)
      for (int64_t kSlices = 1; kSlices <= slices; kSlices *= 2)
        if (threads <= kMostThreads ||
            contractions.readsBufferedResults()) // with fewer threads, a smaller tile takes the place of this one
          if (std::optional<double> seconds = consider(threads, kSlices))
            tile = {true, std::min(tile.seconds, *seconds)};
    return tile;
  }

  /// Returns the seconds of blocks with the present tiles, or nothing if no block has room for one. Blocks that wait
  /// for each other have one tile each and have to be resident together; if they are too many, larger tiles may do.
  std::optional<double> consider(int64_t threads, int64_t kSlices) {
    std::optional<BlockContractions::Candidate> block = contractions.candidate(threads, kSlices);
    if (!block)
      return std::nullopt;
    int64_t resident = residentBlocks(target.gpu, threads, block->work.sharedBytes, block->work.registers);
    if (resident == 0)
      return std::nullopt;
    double blocks = static_cast<double>(block->work.blocks), slots = static_cast<double>(resident * target.cores);
    double together = std::min<double>(resident, std::ceil(blocks / static_cast<double>(target.cores)));
    double seconds = contractions.secondsOf(*block, std::min(blocks, slots), together);
    if (waits() && block->work.blocks > coResidentBlocks(target, resident))
      return seconds;
    BlockCandidate &considered = found.emplace_back();
    considered.composition = Composition::contraction;
    considered.threads = threads;
    considered.kSlices = kSlices;
    considered.tiles = space.tiles;
    considered.block = space.block;
    considered.work = block->work;
    considered.latency.residentBlocks = resident;
    considered.latency.waves = std::ceil(blocks / slots);
    considered.latency.seconds = seconds;
    return seconds;
  }

  /// Returns the fastest candidate. A later one must be clearly faster, or equally fast with less traffic. Blocks of
  /// the usual size, with whole dims and small tiles, come first.
  size_t pick() const {
    size_t best = 0;
    for (size_t i = 1; i < found.size(); ++i) {
      double seconds = found[i].latency.seconds, quickest = found[best].latency.seconds;
      bool readsLess = found[i].work.movedBytes < found[best].work.movedBytes;
      if (isFaster(seconds, quickest, target.costs.confidence.tilings) || (seconds <= quickest && readsLess))
        best = i;
    }
    return best;
  }

  std::vector<BlockCandidate> ranked() {
    auto size = [&](const BlockCandidate &block, int64_t place) { return place < 0 ? 0 : block.tiles[place]; };
    auto order = [&](const BlockCandidate &block) {
      const BlockContraction &first = contractions.all().front();
      // Warpgroup blocks with more threads than their accumulators need rank lower: fewer threads copy more data each
      // and wait for fewer others.
      int64_t accumulators = std::max<int64_t>(1, size(block, first.m)) * std::max<int64_t>(1, size(block, first.n));
      bool isSplit =
          isOfWarpgroup(*block.block) &&
          block.threads != std::max(threadsOfStep(first.kernel), accumulators / target.costs.gpu.threadAccumulators);
      return std::tuple(isOfWarpgroup(*block.block), -size(block, walked), isSplit,
                        llvm::find(kThreads, block.threads) - std::begin(kThreads), size(block, first.m),
                        size(block, first.n), block.kSlices);
    };
    llvm::sort(found, [&](const BlockCandidate &a, const BlockCandidate &b) { return order(a) < order(b); });
    BlockCandidate picked = found[pick()];
    llvm::stable_sort(
        found, [](const BlockCandidate &a, const BlockCandidate &b) { return a.latency.seconds < b.latency.seconds; });
    auto isPicked = [&](const BlockCandidate &block) { return order(block) == order(picked); };
    std::rotate(found.begin(), llvm::find_if(found, isPicked), std::next(llvm::find_if(found, isPicked)));
    return std::move(found);
  }

  const TensorGraph &graph;
  const Target &target;
  IterationSpace &space;
  int64_t walked;
  std::vector<BlockCandidate> found;
  BlockContractions contractions;
};
} // namespace

OrDeclined<std::vector<BlockCandidate>> tilewright::contractionBlocks(const TensorGraph &graph, const Target &target,
                                                                      IterationSpace &space, int64_t walked,
                                                                      llvm::function_ref<int64_t()> footprint) {
  return BlockChooser(graph, target, space, walked, footprint).search();
}

std::string tilewright::chooseContractionBlock(const TensorGraph &graph, const Target &target, IterationSpace &space,
                                               int64_t walked, llvm::function_ref<int64_t()> footprint) {
  OrDeclined<std::vector<BlockCandidate>> blocks = contractionBlocks(graph, target, space, walked, footprint);
  if (blocks)
    blocks->front().applyTo(space);
  return blocks.why().reason;
}
