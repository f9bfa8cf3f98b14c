#include "passes/plan/BlockShapes.h"

#include "passes/cost/BlockLatency.h"
#include "passes/plan/Eligibility.h"
#include "passes/plan/Work.h"

using namespace mlir;
using namespace tilewright;

namespace {
constexpr int64_t kWarpLanes = 32;
constexpr double kSpecialInstructions = 20; ///< of a transcendental function or a division
constexpr double kClearly = 0.97;           ///< of the time before, for another shape to be taken
constexpr int64_t kScratchBytes = 4;        ///< of an element in the scratch of reductions, mostly
constexpr int64_t kLineBytes = 128;         ///< of what neighbouring threads should read together

/// What a nest does at each of its points.
struct NestPoints {
  SmallVector<int64_t> dims; ///< of the space
  double globalLoads = 0, sharedLoads = 0, instructions = 0;
  int64_t accumulators = 0;
  bool reducesVector = false;
};

class ShapeChooser {
public:
  ShapeChooser(const TensorGraph &graph, const Target &target, IndexSpace &space,
               llvm::function_ref<int64_t()> footprint)
      : graph(graph), target(target), space(space), footprint(footprint) {
    collect();
    lanes = chooseLanes();
    globalBytes = workOf(graph, space).globalBytes();
  }

  void choose() {
    bool rows = space.vector < 0 || !isGrid(space.vector);
    // Of shapes that are as good, blocks of the usual size.
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
    if (quickest == std::numeric_limits<double>::infinity()) // refused later, with the bytes that do not fit
      setRows(kWarpLanes, kWarpLanes);
    else
      space = best;
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
        nest.instructions += expr.arithmetic() / points +
                             kSpecialInstructions * specialOps(expr) * std::min(1.0, expr.domainSize() / points);
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
      consider([&](const NestPoints &nest) {
        int64_t vectors = std::ceil(pointsOf(nest, /*inGrid=*/false) / lanes);
        return Share{std::ceil(static_cast<double>(vectors) / group),
                     std::min<int64_t>(group, llvm::PowerOf2Ceil(vectors))};
      });
    }
  }

  /// Neighbouring threads take neighbouring columns; those that are left share the column.
  void tryColumns(int64_t threads) {
    for (int64_t columns = 1; columns <= threads; columns *= 2) {
      int64_t tile = std::min(space.extents[space.vector], columns * lanes);
      bool whole = tile == space.extents[space.vector];
      if (!whole && columns * lanes * widest < kLineBytes)
        continue;
      space.threads = threads;
      space.group = 0;
      cutGrid(1);
      space.tiles[space.vector] = tile;
      consider([&](const NestPoints &nest) {
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
      consider([&](const NestPoints &nest) {
        double points = pointsOf(nest, true) * pointsOf(nest, false);
        return Share{std::ceil(points / lanes / threads), 1};
      });
    }
  }

  /// What falls to a thread: turns, the threads that share a point with it, and how far apart those are.
  struct Share {
    double turns;
    int64_t sharing, distance = 1;
  };

  void consider(llvm::function_ref<Share(const NestPoints &)> shareOf) {
    BlockWork work;
    work.blocks = space.numTiles();
    work.threads = space.threads;
    work.sharedBytes = footprint();
    if (work.sharedBytes > target.blockBytes)
      return;
    work.registers = kBaseRegisters + 2 * lanes * static_cast<int64_t>(space.inputs.size() + space.outputs.size());
    work.registers = std::min<int64_t>(work.registers, target.gpu.registersPerThread);
    work.warpPrivate = space.group > 0 && space.group <= kWarpLanes;
    work.accessBytes = lanes * widest;
    work.bytes = globalBytes;
    for (const NestPoints &nest : nests) {
      Share share = shareOf(nest);
      NestWork own{share.turns, nest.globalLoads, nest.sharedLoads, nest.instructions * lanes};
      own.accumulators = nest.accumulators;
      if (nest.accumulators > 0) {
        own.combinedLanes = std::clamp<int64_t>(kWarpLanes / share.distance, 1, share.sharing);
        own.combinedWarps = share.sharing / own.combinedLanes;
      }
      work.nests.push_back(own);
    }
    double seconds = blockLatency(work, target).seconds;
    if (seconds > kClearly * quickest)
      return;
    quickest = seconds;
    space.latencySeconds = seconds;
    space.blockWork = work;
    if (llvm::any_of(work.nests, [](const NestWork &nest) { return nest.combinedWarps > 1; }))
      space.blockWork.sharedBytes += work.threads * kMostLanes * kScratchBytes;
    best = space;
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
  double quickest = std::numeric_limits<double>::infinity();
  IndexSpace best;
};
} // namespace

void tilewright::chooseBlockShape(const TensorGraph &graph, const Target &target, IndexSpace &space,
                                  llvm::function_ref<int64_t()> footprint) {
  ShapeChooser(graph, target, space, footprint).choose();
}
