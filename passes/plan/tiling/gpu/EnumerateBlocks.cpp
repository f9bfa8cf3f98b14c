// Enumerates the launch dimensions of each composition, and counts the work of a thread, a block and the memory for
// each.
#include "passes/cost/BlockLatency.h"
#include "passes/cost/Clusters.h"
#include "passes/graph/Eligibility.h"
#include "passes/layout/WarpPasses.h"
#include "passes/plan/space/Work.h"
#include "passes/plan/tiling/gpu/BlockReads.h"
#include "passes/plan/tiling/gpu/BlockShapes.h"
#include "passes/target/AccessBytes.h"

#include "llvm/ADT/SmallSet.h"
#include <numeric>

using namespace mlir;
using namespace tilewright;

namespace {
/// Vectors that a thread computes one after another, at most: a bound of the search, on every GPU.
constexpr int64_t kMostTurns = 32;

/// The work of a nest at each of its points.
struct NestPoints {
  SmallVector<int64_t> dims; ///< dims of the space
  double globalLoads = 0, sharedLoads = 0, instructions = 0, special = 0;
  int64_t accumulators = 0;
  llvm::SmallSet<int64_t, 4> elements; ///< element bytes of all tensors that vary along the vector dim
  llvm::SmallSet<int64_t, 4> buffered; ///< element bytes of those in shared memory
};

class BlockEnumerator {
public:
  BlockEnumerator(const TensorGraph &graph, const Target &target, IterationSpace &space,
                  llvm::function_ref<int64_t()> footprint)
      : graph(graph), target(target), space(space), footprint(footprint), reads(graph, space, target) {
    collect();
    lanes = chooseLanes();
  }

  std::vector<BlockCandidate> enumerate() {
    bool rows = space.vector < 0 || !isGrid(space.vector);
    // Block sizes are in order of preference.
    for (int64_t threads : {128, 256, 64, 512, 32, 1024}) {
      if (threads > target.gpu.threadsPerBlock)
        continue;
      if (rows)
        tryRows(threads);
      else if (reduces())
        tryColumns(threads);
      else
        tryElements(threads);
    }
    return std::move(candidates);
  }

  std::optional<BlockCandidate> ofTiles(int64_t threads) {
    if (space.vector < 0 || !isGrid(space.vector) || reduces() || threads > target.gpu.threadsPerBlock)
      return std::nullopt;
    space.threads = threads;
    space.group = 0;
    considerElements();
    return candidates.back();
  }

private:
  bool isGrid(int64_t dim) const { return llvm::is_contained(space.grid, dim); }
  bool reduces() const {
    return llvm::any_of(nests, [](const NestPoints &nest) { return nest.accumulators > 0; });
  }

  //===--------------------------------------------------------------------===//
  // The group
  //===--------------------------------------------------------------------===//

  void collect() {
    for (const GroupRoot &root : space.roots) {
      nests.resize(std::max<size_t>(nests.size(), root.nest + 1));
      NestPoints &nest = nests[root.nest];
      nest.dims = llvm::to_vector(llvm::make_filter_range(root.dims, [](int64_t dim) { return dim >= 0; }));
      for (const RootAccess &access : root.accesses) {
        bool first = space.readingNests(access.tensor).empty() || space.readingNests(access.tensor)[0] == root.nest;
        (access.producer < 0 && first ? nest.globalLoads : nest.sharedLoads) += 1;
        record(root, access.map, access.tensor, access.producer < 0, space.readingNests(access.tensor).size() > 1);
      }
      const TensorExpr &own = graph.exprs()[root.expr];
      for (auto [result, map] : llvm::zip(own.op->getResults(), own.results))
        record(root, map, result, llvm::is_contained(space.outputs, result), !space.readingNests(result).empty());
      double points = std::max<double>(1, own.domainSize());
      NestLoops loops(graph, space, root);
      for (const Evaluation &evaluation : root.evaluated) {
        const TensorExpr &expr = graph.exprs()[evaluation.expr];
        double evaluated = 1;
        for (unsigned dim : loops.around(evaluation))
          evaluated *= own.domain[dim];
        double share = evaluated / points, special = share * specialOps(expr);
        nest.instructions += share * expr.arithmetic() / std::max<double>(1, expr.domainSize()) +
                             target.costs.gpu.specialInstructions * special;
        nest.special += special;
      }
      if (!own.oneReliesOnOne())
        nest.accumulators += own.op->getNumResults();
    }
  }

  /// Records the element size of an access along the vector dim, and whether it is contiguous.
  void record(const GroupRoot &root, AffineMap map, Value tensor, bool isGlobal, bool isReadAgain) {
    auto type = cast<RankedTensorType>(tensor.getType());
    int64_t dim = llvm::find(root.dims, space.vector) - root.dims.begin();
    if (space.vector < 0 || dim == static_cast<int64_t>(root.dims.size()) || !map.isFunctionOfDim(dim))
      return;
    contiguous &= type.getRank() > 0 && unitStrideDim(map.getResult(type.getRank() - 1)) == dim;
    int64_t bytes = tile::elementBytes(type.getElementType());
    if (isGlobal)
      widest = std::max(widest, bytes);
    nests[root.nest].elements.insert(bytes);
    if (!isGlobal || isReadAgain)
      nests[root.nest].buffered.insert(bytes);
  }

  /// Returns the L2 traffic in whole sectors.
  double movedBytes(int64_t cluster) const { return reads.movedBytes(cluster) * sectorShare; }

  bool repeats() const { return movedBytes(1) > target.costs.gpu.hardlyRepeated * reads.globalBytes(); }

  /// Returns the shared memory in which several warps combine their parts of a row or a column.
  int64_t scratchBytes() const {
    if (!reduces() || (space.group > 0 && space.group <= target.gpu.warpLanes))
      return 0;
    return space.threads * target.costs.gpu.typicalElementBytes * (space.group > 0 ? 1 : lanes);
  }

  int64_t chooseLanes() const { return lanesOf(widest); }

  /// Returns the elements that a thread processes at once if the widest element has `bytes` bytes.
  int64_t lanesOf(int64_t bytes) const {
    if (space.vector < 0 || !contiguous)
      return 1;
    int64_t count = std::min(kMostLanes, kAccessBytes / std::min(bytes, kAccessBytes));
    while (space.extents[space.vector] % count != 0)
      count /= 2;
    return count;
  }

  double pointsOf(const NestPoints &nest, bool inGrid) const {
    double points = 1;
    for (int64_t dim : nest.dims)
      if (isGrid(dim) == inGrid)
        points *= space.tiles[dim];
    return points;
  }

  //===--------------------------------------------------------------------===//
  // Candidates
  //===--------------------------------------------------------------------===//

  /// Splits the grid dims, in this order, into tiles of about `points` points.
  void cutGrid(ArrayRef<int64_t> order, int64_t points, int64_t except = -1) {
    for (int64_t dim : order) {
      if (dim == except)
        continue;
      int64_t most = llvm::PowerOf2Ceil(space.extents[dim]), own = std::min(points, most);
      space.tiles[dim] = std::min(space.extents[dim], own);
      points /= own;
    }
  }

  /// Calls `tryTile` for each order of the grid dims with a growing number of turns, until blocks no longer read data
  /// repeatedly.
  void forEachTile(llvm::function_ref<void(ArrayRef<int64_t> order, int64_t turns)> tryTile) {
    for (ArrayRef<int64_t> order : reads.orders())
      for (int64_t turns : {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32}) {
        tryTile(order, turns);
        if (!repeats())
          break;
      }
  }

  /// Tries groups of one thread, of part of a warp, of a warp and of several warps: thread, warp and block composition.
  void tryRows(int64_t threads) {
    double longest = 1;
    for (const NestPoints &nest : nests)
      longest = std::max(longest, pointsOf(nest, /*inGrid=*/false) / lanes);
    int64_t most = llvm::PowerOf2Ceil(static_cast<uint64_t>(std::ceil(longest)));
    for (int64_t group = 1; group <= std::min(threads, most); group *= 2) {
      space.threads = threads;
      space.group = group;
      forEachTile([&](ArrayRef<int64_t> order, int64_t turns) {
        cutGrid(order, turns * threads / group);
        sectorShare = sectorsOfRows();
        considerRows();
      });
    }
    sectorShare = 1;
  }

  /// Returns the bytes of sectors relative to the bytes of a tile of rows, on average over the tiles.
  double sectorsOfRows() const {
    int64_t stride = widest, grain = 0;
    for (auto [dim, extent] : llvm::enumerate(space.extents))
      stride *= isGrid(dim) ? 1 : extent;
    for (int64_t dim : llvm::reverse(space.grid)) {
      if (space.tiles[dim] < space.extents[dim])
        grain = std::gcd(grain, space.tiles[dim] * stride);
      stride *= space.extents[dim];
    }
    double bytes = static_cast<double>(stride) / space.numTiles();
    return (bytes + kSectorBytes - std::gcd(grain, kSectorBytes)) / bytes;
  }

  void considerRows() {
    int64_t group = space.group;
    consider(group == 1            ? Composition::thread
             : group <= target.gpu.warpLanes ? Composition::warp
                                   : Composition::block,
             [&](const NestPoints &nest) {
               int64_t vectors = std::ceil(pointsOf(nest, /*inGrid=*/false) / lanes);
               double rows = std::ceil(pointsOf(nest, /*inGrid=*/true) * group / space.threads);
               Share share{rows * std::ceil(static_cast<double>(vectors) / group),
                           std::min<int64_t>(group, llvm::PowerOf2Ceil(vectors)), /*distance=*/1, rows};
               int64_t rowBytes = static_cast<int64_t>(pointsOf(nest, /*inGrid=*/false)) * widest;
               share.passes = warpPasses(group, rowBytes, lanes * widest);
               share.passes.shared = sharedPasses(nest, share.passes.wholeSectors);
               // A tile of which a warp would read partial sectors is copied as a whole (tile-stage-tiles).
               if (!share.passes.wholeSectors)
                 share.passes.global = 1;
               return share;
             });
  }

  /// Returns the passes of the nest's worst access to shared memory. If tiles are copied there, all accesses count.
  double sharedPasses(const NestPoints &nest, bool keptAlone) const {
    int64_t most = 0;
    for (int64_t bytes : nest.elements)
      most = std::max(most, bytes);
    double passes = 1;
    int64_t length = static_cast<int64_t>(pointsOf(nest, /*inGrid=*/false));
    for (int64_t bytes : keptAlone ? nest.buffered : nest.elements)
      passes = std::max(passes, warpPasses(space.group, length * bytes, lanesOf(most) * bytes).shared);
    return passes;
  }

  /// Neighbouring threads compute neighbouring columns; the remaining threads share the columns.
  void tryColumns(int64_t threads) {
    for (int64_t columns = 1; columns <= threads; columns *= 2) {
      int64_t tile = std::min(space.extents[space.vector], columns * lanes);
      bool whole = tile == space.extents[space.vector];
      space.threads = threads;
      space.group = 0;
      cutGrid(reads.orders().front(), 1);
      space.tiles[space.vector] = tile;
      int64_t run = columns * lanes * widest;
      if (!whole && run < kGpuLineBytes) {
        discard(Composition::columns, "neighbours would read " + std::to_string(run) + " bytes of a line of " +
                                          std::to_string(kGpuLineBytes));
        continue;
      }
      sectorShare = whole ? 1 : sectorsOfRun(run);
      consider(Composition::columns, [&](const NestPoints &nest) {
        double points = pointsOf(nest, /*inGrid=*/false);
        int64_t sharing = std::min<int64_t>(threads / columns, llvm::PowerOf2Ceil(points));
        return Share{std::ceil(points / sharing), sharing, columns, 1, {}};
      });
      if (whole)
        break;
    }
    sectorShare = 1;
  }

  /// Returns the bytes of sectors relative to the bytes of a run within a row, on average over the rows.
  double sectorsOfRun(int64_t run) const {
    int64_t start = std::gcd(space.extents[space.vector] * widest, kSectorBytes);
    return static_cast<double>(run + kSectorBytes - start) / run;
  }

  /// Each thread computes some vectors of a tile.
  void tryElements(int64_t threads) {
    for (ArrayRef<int64_t> order : reads.orders())
      for (int64_t turns = 1; turns <= 8 || (turns <= kMostTurns && repeats()); turns *= 2) {
        int64_t vectors = threads * turns, extent = space.extents[space.vector];
        space.threads = threads;
        space.group = 0;
        space.tiles[space.vector] = std::min(extent, vectors * lanes);
        int64_t along = llvm::PowerOf2Ceil(llvm::divideCeil(space.tiles[space.vector], lanes));
        cutGrid(order, std::max<int64_t>(1, vectors / along), space.vector);
        considerElements();
      }
  }

  void considerElements() {
    consider(Composition::points, [&](const NestPoints &nest) {
      double points = pointsOf(nest, true) * pointsOf(nest, false);
      return Share{std::ceil(points / lanes / space.threads), 1, 1, 1, {}};
    });
  }

  /// The work of one thread: its turns, the threads that share a point with it, and the distance between those in
  /// lanes.
  struct Share {
    double turns;
    int64_t sharing, distance = 1;
    double combined = 1; ///< accumulators of the thread, one for each of its rows
    WarpPasses passes = {};
  };

  BlockCandidate candidate(Composition composition) const {
    BlockCandidate now;
    now.composition = composition;
    now.threads = space.threads;
    now.group = space.group;
    now.tiles = space.tiles;
    now.work.blocks = space.numTiles();
    now.work.threads = space.threads;
    return now;
  }

  void discard(Composition composition, std::string why) {
    candidates.push_back(candidate(composition));
    candidates.back().discarded = std::move(why);
  }

  void consider(Composition composition, llvm::function_ref<Share(const NestPoints &)> shareOf) {
    BlockCandidate now = candidate(composition);
    BlockWork &work = now.work;
    now.cluster = reads.cluster(target);
    work.sharedBytes = footprint() + reads.stagedBytes(now.cluster) + scratchBytes();
    if (work.sharedBytes > target.blockBytes)
      return discard(composition, "its rows take " + std::to_string(work.sharedBytes) +
                                      " bytes of shared memory; the target has " + std::to_string(target.blockBytes));
    work.registers =
        target.costs.gpu.baseRegisters + 2 * lanes * static_cast<int64_t>(space.inputs.size() + space.outputs.size());
    work.registers = std::min<int64_t>(work.registers, target.gpu.registersPerThread);
    work.warpPrivate = space.group > 0 && space.group <= target.gpu.warpLanes;
    work.accessBytes = lanes * widest;
    work.bytes = reads.globalBytes();
    work.movedBytes = movedBytes(now.cluster);
    for (const NestPoints &nest : nests) {
      Share share = shareOf(nest);
      NestWork own{share.turns, nest.globalLoads, nest.sharedLoads};
      own.instructions = nest.instructions * lanes;
      own.special = nest.special * lanes;
      own.globalPasses = share.passes.global;
      own.sharedPasses = share.passes.shared;
      own.accumulators = nest.accumulators * static_cast<int64_t>(share.combined);
      if (nest.accumulators > 0) {
        own.combinedLanes = std::clamp<int64_t>(target.gpu.warpLanes / share.distance, 1, share.sharing);
        own.combinedWarps = share.sharing / own.combinedLanes;
      }
      work.nests.push_back(own);
    }
    now.latency = blockLatency(work, target);
    now.latency.seconds += clusterSeconds(target, now.cluster);
    if (now.latency.residentBlocks == 0)
      now.discarded = "no such block fits on an SM";
    candidates.push_back(std::move(now));
  }

  const TensorGraph &graph;
  const Target &target;
  IterationSpace &space;
  llvm::function_ref<int64_t()> footprint;
  BlockReads reads;
  std::vector<NestPoints> nests;
  int64_t lanes = 1, widest = 1; ///< elements per vector; bytes of the widest global element along the vector dim
  bool contiguous = true;
  double sectorShare = 1; ///< bytes of sectors relative to the bytes that a tile reads
  std::vector<BlockCandidate> candidates;
};
} // namespace

std::optional<BlockCandidate> tilewright::blockOfTiles(const TensorGraph &graph, const Target &target,
                                                       IterationSpace &space, int64_t threads,
                                                       llvm::function_ref<int64_t()> footprint) {
  return BlockEnumerator(graph, target, space, footprint).ofTiles(threads);
}

std::vector<BlockCandidate> tilewright::enumerateBlocks(const TensorGraph &graph, const Target &target,
                                                        IterationSpace &space,
                                                        llvm::function_ref<int64_t()> footprint) {
  return BlockEnumerator(graph, target, space, footprint).enumerate();
}
