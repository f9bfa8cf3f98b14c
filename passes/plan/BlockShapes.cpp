#include "passes/plan/BlockShapes.h"

#include "passes/cost/BlockLatency.h"
#include "passes/cost/WarpPasses.h"
#include "passes/plan/Eligibility.h"
#include "passes/plan/Work.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tilewright;

namespace {
constexpr int64_t kWarpLanes = 32;
constexpr double kSpecialInstructions = 12; ///< light ones around that of a transcendental function or a division
constexpr double kClearly = 0.97;           ///< of the time before, for another shape to be taken
constexpr int64_t kScratchBytes = 4;        ///< of an element in the scratch of reductions, mostly
constexpr int64_t kLineBytes = 128;         ///< of what neighbouring threads should read together

/// What a nest does at each of its points.
struct NestPoints {
  SmallVector<int64_t> dims; ///< of the space
  double globalLoads = 0, sharedLoads = 0, instructions = 0, special = 0;
  int64_t accumulators = 0;
  bool reducesVector = false;
};

class BlockEnumerator {
public:
  BlockEnumerator(const TensorGraph &graph, const Target &target, IndexSpace &space,
                  llvm::function_ref<int64_t()> footprint)
      : graph(graph), target(target), space(space), footprint(footprint) {
    collect();
    lanes = chooseLanes();
    globalBytes = workOf(graph, space).globalBytes();
  }

  std::vector<BlockCandidate> enumerate() {
    bool rows = space.vector < 0 || !isGrid(space.vector);
    // Blocks of the usual size first.
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

private:
  bool isGrid(int64_t dim) const { return llvm::is_contained(space.grid, dim); }
  bool reduces() const {
    return llvm::any_of(nests, [](const NestPoints &nest) { return nest.accumulators > 0; });
  }

  //===--------------------------------------------------------------------===//
  // The part
  //===--------------------------------------------------------------------===//

  void collect() {
    for (const PartRoot &root : space.roots) {
      nests.resize(std::max<size_t>(nests.size(), root.nest + 1));
      NestPoints &nest = nests[root.nest];
      nest.dims = llvm::to_vector(llvm::make_filter_range(root.dims, [](int64_t dim) { return dim >= 0; }));
      for (const RootAccess &access : root.accesses) {
        bool first = space.readingNests(access.tensor).empty() || space.readingNests(access.tensor)[0] == root.nest;
        (access.producer < 0 && first ? nest.globalLoads : nest.sharedLoads) += 1;
        see(root, access.map, access.tensor, access.producer < 0);
      }
      const TensorExpr &own = graph.exprs()[root.expr];
      for (auto [result, map] : llvm::zip(own.op->getResults(), own.results))
        see(root, map, result, llvm::is_contained(space.outputs, result));
      double points = std::max<double>(1, own.domainSize());
      for (unsigned id : root.evaluated) {
        const TensorExpr &expr = graph.exprs()[id];
        double special = specialOps(expr) * std::min(1.0, expr.domainSize() / points);
        nest.instructions += expr.arithmetic() / points + kSpecialInstructions * special;
        nest.special += special;
      }
      if (!own.oneReliesOnOne()) {
        nest.accumulators += own.op->getNumResults();
        for (int64_t dim : own.reductions)
          nest.reducesVector |= root.dims[dim] == space.vector;
      }
    }
  }

  /// Notes how wide an access along the vector dim may be.
  void see(const PartRoot &root, AffineMap map, Value tensor, bool isGlobal) {
    auto type = cast<RankedTensorType>(tensor.getType());
    int64_t dim = llvm::find(root.dims, space.vector) - root.dims.begin();
    if (space.vector < 0 || dim == static_cast<int64_t>(root.dims.size()) || !map.isFunctionOfDim(dim))
      return;
    contiguous &= type.getRank() > 0 && unitStrideDim(map.getResult(type.getRank() - 1)) == dim;
    if (isGlobal)
      widest = std::max(widest, tile::elementBytes(type.getElementType()));
  }

  int64_t chooseLanes() const {
    if (space.vector < 0 || !contiguous)
      return 1;
    int64_t count = std::min(kMostLanes, kAccessBytes / std::min(widest, kAccessBytes));
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

  /// Cuts the grid dims, innermost first, into tiles of so many points, a power of two.
  void cutGrid(int64_t points, int64_t except = -1) {
    for (int64_t dim : llvm::reverse(space.grid)) {
      if (dim == except)
        continue;
      int64_t most = llvm::PowerOf2Ceil(space.extents[dim]), own = std::min(points, most);
      space.tiles[dim] = std::min(space.extents[dim], own);
      points /= own;
    }
  }

  void setRows(int64_t threads, int64_t group) {
    space.threads = threads;
    space.group = group;
    cutGrid(threads / group);
  }

  /// Groups of a thread, of lanes of a warp, of a warp, of several warps: thread, warp and block composition.
  void tryRows(int64_t threads) {
    double longest = 1;
    for (const NestPoints &nest : nests)
      longest = std::max(longest, pointsOf(nest, /*inGrid=*/false) / lanes);
    int64_t most = llvm::PowerOf2Ceil(static_cast<uint64_t>(std::ceil(longest)));
    for (int64_t group = 1; group <= std::min(threads, most); group *= 2) {
      setRows(threads, group);
      consider(group == 1            ? Composition::thread
               : group <= kWarpLanes ? Composition::warp
                                     : Composition::block,
               [&](const NestPoints &nest) {
                 int64_t vectors = std::ceil(pointsOf(nest, /*inGrid=*/false) / lanes);
                 Share share{std::ceil(static_cast<double>(vectors) / group),
                             std::min<int64_t>(group, llvm::PowerOf2Ceil(vectors))};
                 int64_t rowBytes = static_cast<int64_t>(pointsOf(nest, /*inGrid=*/false)) * widest;
                 share.passes = warpPasses(group, rowBytes, lanes * widest);
                 // Tiles of which a warp would read parts of sectors are copied as a whole (tile-stage-tiles).
                 if (!share.passes.wholeSectors)
                   share.passes.global = 1;
                 return share;
               });
    }
  }

  /// Neighbouring threads take neighbouring columns; those that are left share the column.
  void tryColumns(int64_t threads) {
    for (int64_t columns = 1; columns <= threads; columns *= 2) {
      int64_t tile = std::min(space.extents[space.vector], columns * lanes);
      bool whole = tile == space.extents[space.vector];
      space.threads = threads;
      space.group = 0;
      cutGrid(1);
      space.tiles[space.vector] = tile;
      int64_t run = columns * lanes * widest;
      if (!whole && run < kLineBytes) {
        discard(Composition::columns,
                "neighbours would read " + std::to_string(run) + " bytes of a line of " + std::to_string(kLineBytes));
        continue;
      }
      consider(Composition::columns, [&](const NestPoints &nest) {
        double points = pointsOf(nest, /*inGrid=*/false);
        int64_t sharing = nest.accumulators > 0 ? std::min<int64_t>(threads / columns, llvm::PowerOf2Ceil(points)) : 1;
        return Share{std::ceil(points / sharing), sharing, columns};
      });
      if (whole)
        return;
    }
  }

  /// Each thread takes some vectors of a tile.
  void tryElements(int64_t threads) {
    for (int64_t turns = 1; turns <= 8; turns *= 2) {
      int64_t vectors = threads * turns, extent = space.extents[space.vector];
      space.threads = threads;
      space.group = 0;
      space.tiles[space.vector] = std::min(extent, vectors * lanes);
      int64_t along = llvm::PowerOf2Ceil(llvm::divideCeil(space.tiles[space.vector], lanes));
      cutGrid(std::max<int64_t>(1, vectors / along), space.vector);
      consider(Composition::points, [&](const NestPoints &nest) {
        double points = pointsOf(nest, true) * pointsOf(nest, false);
        return Share{std::ceil(points / lanes / threads), 1};
      });
    }
  }

  /// What falls to a thread: turns, the threads that share a point with it, and how far apart those are.
  struct Share {
    double turns;
    int64_t sharing, distance = 1;
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
    work.sharedBytes = footprint();
    if (work.sharedBytes > target.blockBytes)
      return discard(composition, "its rows take " + std::to_string(work.sharedBytes) +
                                      " bytes of shared memory; the target has " + std::to_string(target.blockBytes));
    work.registers = kBaseRegisters + 2 * lanes * static_cast<int64_t>(space.inputs.size() + space.outputs.size());
    work.registers = std::min<int64_t>(work.registers, target.gpu.registersPerThread);
    work.warpPrivate = space.group > 0 && space.group <= kWarpLanes;
    work.accessBytes = lanes * widest;
    work.bytes = globalBytes;
    for (const NestPoints &nest : nests) {
      Share share = shareOf(nest);
      NestWork own{share.turns, nest.globalLoads, nest.sharedLoads};
      own.instructions = nest.instructions * lanes;
      own.special = nest.special * lanes;
      own.globalPasses = share.passes.global;
      own.sharedPasses = share.passes.shared;
      own.accumulators = nest.accumulators;
      if (nest.accumulators > 0) {
        own.combinedLanes = std::clamp<int64_t>(kWarpLanes / share.distance, 1, share.sharing);
        own.combinedWarps = share.sharing / own.combinedLanes;
      }
      work.nests.push_back(own);
    }
    now.latency = blockLatency(work, target);
    if (now.latency.residentBlocks == 0)
      now.discarded = "no block of it is resident on an SM";
    if (llvm::any_of(work.nests, [](const NestWork &nest) { return nest.combinedWarps > 1; }))
      work.sharedBytes += work.threads * kMostLanes * kScratchBytes;
    candidates.push_back(std::move(now));
  }

  static constexpr int64_t kBaseRegisters = 32;

  const TensorGraph &graph;
  const Target &target;
  IndexSpace &space;
  llvm::function_ref<int64_t()> footprint;
  std::vector<NestPoints> nests;
  double globalBytes = 0;        ///< that the part touches, each once
  int64_t lanes = 1, widest = 1; ///< bytes of the widest global element along the vector dim
  bool contiguous = true;
  std::vector<BlockCandidate> candidates;
};
} // namespace

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
  }
  llvm_unreachable("a composition");
}

void BlockCandidate::print(llvm::raw_ostream &os) const {
  os << stringify(composition) << ", " << work.blocks << " blocks of " << threads << " threads";
  if (group > 0)
    os << ", " << group << " a row";
  os << ", tiles [";
  llvm::interleaveComma(tiles, os);
  os << "]: ";
  if (!discarded.empty()) {
    os << "discarded, " << discarded;
    return;
  }
  os << llvm::format("%.2f us, %.0f waves x %.0f cycles a warp, ", latency.seconds * 1e6, latency.waves,
                     latency.warpCycles)
     << latency.residentBlocks << " blocks resident by " << work.registers << " registers and " << work.sharedBytes
     << " bytes of shared memory, " << llvm::format("%.0f%% of the bandwidth", 100 * latency.inFlight);
}

std::vector<BlockCandidate> tilewright::enumerateBlocks(const TensorGraph &graph, const Target &target,
                                                        IndexSpace &space, llvm::function_ref<int64_t()> footprint) {
  return BlockEnumerator(graph, target, space, footprint).enumerate();
}

int64_t tilewright::quickestBlock(ArrayRef<BlockCandidate> candidates) {
  int64_t best = -1;
  for (auto [i, candidate] : llvm::enumerate(candidates))
    if (candidate.discarded.empty() &&
        (best < 0 || candidate.latency.seconds <= kClearly * candidates[best].latency.seconds))
      best = i;
  return best;
}

void tilewright::chooseBlockShape(const TensorGraph &graph, const Target &target, IndexSpace &space,
                                  llvm::function_ref<int64_t()> footprint) {
  std::vector<BlockCandidate> candidates = enumerateBlocks(graph, target, space, footprint);
  int64_t best = quickestBlock(candidates);
  // Where none fits, the part is refused later, with the bytes of the smallest.
  const BlockCandidate &chosen = best >= 0 ? candidates[best] : *llvm::min_element(candidates, [](auto &a, auto &b) {
    return std::pair(a.threads, -a.group) < std::pair(b.threads, -b.group);
  });
  space.tiles = chosen.tiles;
  space.threads = chosen.threads;
  space.group = chosen.group;
  if (best < 0)
    return;
  space.latencySeconds = chosen.latency.seconds;
  space.blockWork = chosen.work;
}
