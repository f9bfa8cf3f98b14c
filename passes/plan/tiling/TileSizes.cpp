#include "passes/plan/tiling/TileSizes.h"

#include "passes/support/AffineAlgebra.h"
#include "passes/support/BestFit.h"
#include "passes/graph/OnlineSoftmax.h"
#include "passes/cost/BufferedSlice.h"
#include "passes/plan/tiling/gpu/BlockShapes.h"
#include "passes/plan/tiling/cpu/ChainMovement.h"
#include "passes/plan/tiling/gpu/ContractionBlocks.h"
#include "passes/plan/space/ContractionKernel.h"
#include "passes/plan/space/LiveBuffers.h"
#include "passes/plan/space/WalkedDim.h"
#include "passes/plan/space/Work.h"
#include "passes/target/AllowedProducts.h"
#include "passes/target/LaneBytes.h"

#include <map>

using namespace mlir;
using namespace tilewright;

namespace {
constexpr int64_t kLanes = 64;                    ///< tiles of a vector dim are multiples of this many elements
constexpr int64_t kElementwiseTile = 4096;        ///< elements along the vector dim when nothing is reduced
constexpr int64_t kReducedTile = 256;             ///< ... when something else is: the accumulators stay in L1
constexpr int64_t kRowsTile = 64;                 ///< rows that lie side by side in lanes: each buffer stays in L1
constexpr int64_t kSmallTile = 512;               ///< points below which a tile does not pay for its loop overhead
constexpr int64_t kRunningTile = 2048;            ///< the same where rows end in a chain of a maximum, an exp and a sum
constexpr double kWorkgroupSeconds = 1e-6;        ///< below which a workgroup does not pay for its dispatch
constexpr int64_t kWorkgroupStaging = 128 * 1024; ///< inputs that every tile reads are kept up to this many bytes
constexpr int64_t kLineBytes = 64;
constexpr int64_t kShortestBlock = 128, kLongestBlock = 1024; ///< of a reduced dim that tiles walk
constexpr double kClearly = 0.95;                             ///< of the time without that
constexpr size_t kWeighed = 12;    ///< tilings, the quickest by arithmetic and traffic, whose movement is counted
constexpr double kNotHidden = 0.2; ///< of the time that filling L1 takes behind multiplications, measured on Zen 5
/// Until memory is read as fast again behind a jump to another row: 8 rows side by side in pieces of 384 to 25000
/// elements took 40 to 180 ns a piece longer than in one on Zen 4.
constexpr double kRunSeconds = 50e-9;
constexpr int64_t kStreams = 4; ///< tensors that share the outermost cache: one larger than its part does not stay

class TileChooser {
public:
  TileChooser(const TensorGraph &graph, const GroupChoice &part, const Target &target, IterationSpace &space)
      : graph(graph), part(part), target(target), space(space) {}

  /// Returns why no tiles fit, or nothing.
  std::string choose() {
    space.inputs = groupInputs(graph, part);
    space.outputs = groupOutputs(graph, part);
    space.inOrder = target.has(kStrictFeature);
    space.tiles.resize(space.extents.size());
    for (size_t dim = 0; dim < space.extents.size(); ++dim)
      space.tiles[dim] = isGrid(dim) ? 1 : space.extents[dim];
    if (contracts() && isGpu()) {
      int64_t walked = walkableDim(graph, part, space);
      std::string why = chooseContractionBlock(graph, target, space, walked, [&] { return footprint(); });
      if (!why.empty())
        return why;
    } else if (contracts()) {
      chooseContractionTiles();
    } else if (isGpu()) {
      chooseBlockShape(graph, target, space, [&] { return footprint(); });
    } else {
      if (space.vector >= 0 && isGrid(space.vector))
        chooseVectorTile();
      fillCacheLines();
      growSmallTiles();
    }
    return finish();
  }

  std::vector<BlockCandidate> blocks() {
    std::string why;
    if (contracts())
      return contractionBlocks(graph, target, space, walkableDim(graph, part, space), [&] { return footprint(); }, why);
    return enumerateBlocks(graph, target, space, [&] { return footprint(); });
  }

  std::optional<BlockCandidate> block(ArrayRef<int64_t> tiles, int64_t threads) {
    if (contracts())
      return std::nullopt;
    space.tiles = tiles;
    return blockOfTiles(graph, target, space, threads, [&] { return footprint(); });
  }

  std::string take(ArrayRef<int64_t> tiles) {
    space.tiles = tiles;
    space.counted = countedAlong(graph, part, space.roots, walkedDim(space.extents, space.tiles, space.grid));
    return finish();
  }

  std::string take(const BlockCandidate &block) {
    block.applyTo(space);
    return finish();
  }

private:
  /// What follows from the tiles.
  std::string finish() {
    space.workgroups = isGpu() ? space.numTiles() : std::min(wantedWorkgroups(), space.numTiles());
    space.footprintBytes = footprint();
    space.workgroupStaged = workgroupStaged();
    space.tileStaged = tileStaged();
    if (!isGpu())
      space.streamed = streamed();
    if (space.footprintBytes > target.blockBytes)
      return "the tiles of one workgroup take " + std::to_string(space.footprintBytes) + " bytes; the target has " +
             std::to_string(target.blockBytes);
    return "";
  }

  bool isContraction(const GroupRoot &root) const { return graph.exprs()[root.expr].kind == ExprKind::contraction; }
  bool contracts() const {
    return llvm::any_of(space.roots, [&](const GroupRoot &root) { return isContraction(root); });
  }
  bool isGpu() const { return target.backend == Backend::cuda; }
  bool isGrid(int64_t dim) const { return llvm::is_contained(space.grid, dim); }

  /// Two for each core; one core has nothing to share.
  int64_t mostWorkgroups() const { return target.cores > 1 ? 2 * target.cores : 1; }

  /// As many as the work of the part pays for.
  int64_t wantedWorkgroups() {
    if (wanted == 0) {
      GroupWork work = workOf(graph, space);
      work.workgroups = 1;
      double seconds = predictKernel(work, target).seconds - target.launchSeconds;
      wanted = std::clamp<int64_t>(static_cast<int64_t>(seconds / kWorkgroupSeconds), 1, mostWorkgroups());
    }
    return wanted;
  }

  /// Half of what the workgroup has, so that tiles stay in the cache beside what streams through.
  bool fits() const {
    return footprint() <= std::min(target.blockBytes, target.level(tile::Space::block).capacityBytes / 2);
  }

  /// A tile of at most `limit` elements that splits the extent evenly, in units of so many.
  static int64_t evenTile(int64_t extent, int64_t limit, int64_t unit = kLanes) {
    if (extent <= limit)
      return extent;
    int64_t pieces = llvm::divideCeil(extent, limit);
    return std::min<int64_t>(extent, llvm::alignTo(llvm::divideCeil(extent, pieces), unit));
  }

  //===--------------------------------------------------------------------===//
  // Contractions
  //===--------------------------------------------------------------------===//

  struct Tiling {
    std::vector<int64_t> tiles;
    double seconds;
  };

  /// Whole register blocks. Every split of the row dim into even pieces with every number of lane blocks is predicted,
  /// and of the quickest the one taken that is so with what its code moves between caches (BlockMovement.h); a batch
  /// dim is walked one by one. What a tile holds along a reduced dim may be blocks of it, where that is clearly
  /// quicker.
  void chooseContractionTiles() {
    chooseBlock();
    space.leastRows = rowsPerPanel();
    space.cacheBytes = target.level(tile::Space::block).capacityBytes;
    std::vector<Tiling> tilings = contractionTilings();
    llvm::stable_sort(tilings, [](const Tiling &a, const Tiling &b) { return a.seconds < b.seconds; });
    std::vector<OperatorChain> chains = chainsOf(graph, part.exprs, space);
    Tiling best{{}, std::numeric_limits<double>::infinity()};
    for (Tiling &tiling : llvm::MutableArrayRef(tilings).take_front(kWeighed)) {
      if (tiling.seconds >= best.seconds)
        break; // movement makes none quicker
      space.tiles = tiling.tiles;
      tiling.seconds = withMovement(chains, tiling.seconds);
      if (tiling.seconds < best.seconds)
        best = tiling;
    }
    space.tiles = best.tiles;
  }

  std::vector<Tiling> contractionTilings() {
    std::vector<Tiling> found;
    int64_t row = rowDim(), walked = walkableDim(graph, part, space);
    space.counted = countedAlong(graph, part, space.roots, walked);
    for (int64_t blocks : walkedTiles(walked))
      for (int64_t rows : rowTiles(row))
        for (int64_t lanes : laneTiles()) {
          if (row >= 0)
            space.tiles[row] = rows;
          if (space.vector >= 0)
            space.tiles[space.vector] = lanes;
          if (walked >= 0)
            space.tiles[walked] = blocks;
          bool whole = walked < 0 || blocks == space.extents[walked];
          found.push_back({space.tiles, contractionSeconds() / (whole ? 1 : kClearly)});
        }
    return found;
  }

  /// The slowest level decides (Chimera eq. 3), but filling the innermost cache is not hidden whole.
  double withMovement(ArrayRef<OperatorChain> chains, double seconds) {
    space.footprintBytes = footprint();
    space.workgroups = std::min(mostWorkgroups(), space.numTiles());
    std::vector<LevelMovement> levels = movementIn(graph, space, chains, target);
    for (const LevelMovement &level : levels)
      seconds = std::max(seconds, level.seconds);
    return levels.empty() ? seconds : seconds + kNotHidden * levels.front().seconds;
  }

  SmallVector<int64_t> walkedTiles(int64_t dim) const {
    SmallVector<int64_t> sizes = {dim < 0 ? 1 : space.extents[dim]};
    for (int64_t limit = kLongestBlock; dim >= 0 && limit >= kShortestBlock; limit /= 2)
      if (limit < space.extents[dim])
        sizes.push_back(evenTile(space.extents[dim], limit));
    return sizes;
  }

  /// The register block of the part's first contraction.
  void chooseBlock() {
    for (const GroupRoot &root : space.roots)
      if (std::optional<MicroKernel> kernel = microKernelFor(graph, root, target)) {
        space.block = kernel->blockFor(target);
        space.speed = kernel->speed;
        return;
      }
  }

  /// Rows in the time in which the outer cache of a core hands over the lanes that they are multiplied with.
  double rowsPerPanel() const {
    double multiplications = target.flopsPerSecond / 2, lanes = target.level(tile::Space::block).bandwidth / kLaneBytes;
    return std::min<double>(space.block.rows, multiplications / lanes);
  }

  double contractionSeconds() {
    space.footprintBytes = footprint();
    space.workgroups = std::min(mostWorkgroups(), space.numTiles());
    // Tiles that spill out of the workgroup's memory are a last resort, refused where they do not fit at all.
    double penalty = space.footprintBytes > target.blockBytes ? 1e3 : 1;
    return predictKernel(workOf(graph, space), target).seconds * penalty +
           kTileSeconds * space.numTiles() * space.blocksPerTile() * space.countedShare() / target.cores +
           kRunSeconds * runsOfStreams(graph, space, target) / target.cores;
  }

  /// The place of the dim that register blocks take their rows from, if it is in the grid.
  int64_t rowDim() const {
    for (const GroupRoot &root : space.roots)
      if (isContraction(root))
        if (std::optional<ContractionRoles> roles = rolesOf(graph, root); roles && roles->row >= 0)
          if (int64_t place = root.dims[roles->row]; place >= 0 && isGrid(place))
            return place;
    return -1;
  }

  SmallVector<int64_t> rowTiles(int64_t row) const {
    if (row < 0)
      return {1};
    SmallVector<int64_t> sizes;
    int64_t extent = space.extents[row], block = space.block.rows;
    for (int64_t pieces = 1, most = llvm::divideCeil(extent, block); pieces <= most;
         pieces = pieces < 8 ? pieces + 1 : pieces * 2) {
      int64_t size = llvm::divideCeil(extent, pieces);
      sizes.push_back(pieces == 1 ? extent : std::min<int64_t>(extent, llvm::alignTo(size, block)));
      if (extent % pieces == 0 && sizes.back() != size)
        sizes.push_back(size);
    }
    return sizes;
  }

  SmallVector<int64_t> laneTiles() const {
    if (space.vector < 0 || !isGrid(space.vector))
      return {space.vector < 0 ? 1 : space.extents[space.vector]};
    // Even pieces: a shorter last one would leave a core waiting.
    SmallVector<int64_t> sizes = {space.extents[space.vector]};
    int64_t lanes = space.block.vectors * target.vectorBytes / kLaneBytes;
    int64_t blocks = llvm::divideCeil(sizes[0], lanes);
    for (int64_t pieces = 2; pieces <= blocks; pieces = pieces < 8 ? pieces + 1 : pieces + pieces / 2)
      sizes.push_back(llvm::divideCeil(blocks, pieces) * lanes);
    return sizes;
  }

  void chooseVectorTile() {
    bool reduces =
        llvm::any_of(space.roots, [&](const GroupRoot &root) { return !graph.exprs()[root.expr].oneReliesOnOne(); });
    int64_t limit = space.rowsInLanes ? kRowsTile : reduces ? kReducedTile : kElementwiseTile;
    int64_t unit = space.rowsInLanes ? space.lanes : kLanes, extent = space.extents[space.vector];
    int64_t &tile = space.tiles[space.vector];
    tile = evenTile(extent, limit, unit);
    while (tile > unit && (!fits() || space.numTiles() < wantedWorkgroups())) {
      limit = std::max(unit, tile / 2);
      int64_t smaller = evenTile(extent, limit, unit);
      if (smaller == tile)
        break;
      tile = smaller;
    }
  }

  /// A tile that crosses a global tensor's innermost dim one element at a time uses little of each cache line: such a
  /// grid dim is cut by lines instead, and the vector dim short enough for the lines of a tile to stay in L1.
  void fillCacheLines() {
    std::vector<int64_t> before = space.tiles;
    for (const GroupRoot &root : space.roots) {
      const TensorExpr &expr = graph.exprs()[root.expr];
      for (const RootAccess &access : root.accesses)
        if (access.producer < 0)
          fillCacheLine(root, access.map, access.tensor);
      for (auto [result, map] : llvm::zip(expr.op->getResults(), expr.results))
        if (llvm::is_contained(space.outputs, result))
          fillCacheLine(root, map, result);
    }
    if (space.tiles == before)
      return;
    if (isGrid(space.vector))
      space.tiles[space.vector] =
          evenTile(space.extents[space.vector], std::min(kReducedTile, space.tiles[space.vector]));
    if (!fits() || space.numTiles() < wantedWorkgroups())
      space.tiles = before;
  }

  void fillCacheLine(const GroupRoot &root, AffineMap map, Value tensor) {
    auto type = cast<RankedTensorType>(tensor.getType());
    for (int64_t position = type.getRank() - 1; position >= 0; --position) {
      if (type.getDimSize(position) == 1)
        continue;
      int64_t dim = unitStrideDim(map.getResult(position)), place = dim < 0 ? -1 : root.dims[dim];
      if (place >= 0 && isGrid(place) && place != space.vector)
        space.tiles[place] =
            std::min(space.extents[place], std::max(space.tiles[place], kLineBytes / elementBytesOf(tensor)));
      return;
    }
  }

  int64_t pointsPerTile() const {
    int64_t most = 1;
    for (const GroupRoot &root : space.roots) {
      int64_t points = 1;
      for (int64_t dim : root.dims)
        points *= dim < 0 ? 1 : space.tiles[dim];
      most = std::max(most, points);
    }
    return most;
  }

  /// Rows of a few elements share a tile, innermost rows first. Where results are streamed, the chain at the end of a
  /// row is hidden by the next tile, which begins meanwhile, and rows of two tiles share L1.
  void growSmallTiles() {
    bool runs = llvm::any_of(space.roots, [](const GroupRoot &root) { return root.reference >= 0; });
    int64_t least = runs && streamed().empty() ? kRunningTile : kSmallTile;
    for (int64_t dim : llvm::reverse(space.grid)) {
      int64_t points = pointsPerTile();
      if (points >= least)
        return;
      int64_t before = space.tiles[dim], extent = space.extents[dim];
      int64_t wanted = std::min(extent, before * static_cast<int64_t>(llvm::divideCeil(least, points)));
      space.tiles[dim] = llvm::divideCeil(extent, llvm::divideCeil(extent, wanted));
      if (!fits() || space.numTiles() < wantedWorkgroups()) {
        space.tiles[dim] = before;
        return;
      }
      if (space.tiles[dim] < extent)
        return;
    }
  }

  int64_t footprint() const {
    int64_t bytes = isGpu() && contracts() ? liveBufferBytes(graph, space, walkPhases()) : resultBytes();
    std::vector<Value> resident = workgroupStaged();
    for (Value tensor : resident)
      bytes += aligned(tensorBytes(tensor));
    for (auto [root, access] : keptForTile())
      if (!llvm::is_contained(resident, access->tensor))
        bytes += aligned(sliceBytes(*root, *access));
    return bytes;
  }

  /// Of the roots, if tiles walk a dim.
  ArrayRef<WalkPhase> walkPhases() const {
    int64_t walked = walkedDim(space.extents, space.tiles, space.grid);
    if (walked < 0)
      return {};
    auto [entry, isNew] = phases.try_emplace(walked);
    if (isNew)
      entry->second = walkAlong(graph, part, space.roots, walked).phases;
    return entry->second;
  }

  static int64_t aligned(int64_t bytes) { return llvm::alignTo(bytes, kBufferAlignment); }

  /// Tiles of results that later nests read, and of what grows along a walked dim another one for its blocks.
  int64_t resultBytes() const {
    int64_t bytes = 0, walked = walkedDim(space.extents, space.tiles, space.grid);
    for (const GroupRoot &root : space.roots) {
      const TensorExpr &expr = graph.exprs()[root.expr];
      for (auto [result, map] : llvm::zip(expr.op->getResults(), expr.results)) {
        bool grows =
            llvm::any_of(expr.reductions, [&](int64_t reduced) { return walked >= 0 && root.dims[reduced] == walked; });
        if (space.readingNests(result).empty() && !grows)
          continue;
        int64_t elements = 1;
        for (AffineExpr index : map.getResults())
          if (int64_t dim = pureDim(index); dim >= 0 && root.dims[dim] >= 0)
            elements *= space.tiles[root.dims[dim]];
        bytes += aligned(elements * elementBytesOf(result)) * (grows ? 2 : 1);
        if (root.reference >= 0)
          bytes += aligned(llvm::divideCeil(elements, pointsPerReference(target.vectorBytes, target.vectorRegisters)) *
                           elementBytesOf(result));
      }
    }
    return bytes;
  }

  static int64_t elementBytesOf(Value tensor) {
    return tile::elementBytes(cast<RankedTensorType>(tensor.getType()).getElementType());
  }

  using Access = std::pair<const GroupRoot *, const RootAccess *>;

  /// Whether the tile program can keep what the access reads of an input (stageInputs in Movement.cpp).
  bool mayBeKept(const GroupRoot &root, const RootAccess &access) const {
    return access.producer < 0 && !isContraction(root) && access.guard == IntegerSet() &&
           isKeptByPoints(inSpace(root, access), space.extents,
                          cast<RankedTensorType>(access.tensor.getType()).getShape());
  }

  /// Accesses to inputs that several nests make, each by its first root: their slices are kept for the tile.
  std::vector<Access> readAgain() const {
    std::vector<Access> first, again;
    for (const GroupRoot &root : space.roots)
      for (const RootAccess &access : root.accesses) {
        if (!mayBeKept(root, access))
          continue;
        auto same = [&](const Access &other) {
          return other.second->tensor == access.tensor && inSpace(*other.first, *other.second) == inSpace(root, access);
        };
        auto known = llvm::find_if(first, same);
        if (known == first.end())
          first.push_back({&root, &access});
        else if (known->first->nest != root.nest && llvm::none_of(again, same))
          again.push_back(*known);
      }
    return again;
  }

  /// Those, and on a GPU what one nest reads again and again; a workgroup of a CPU has that in its own staging.
  std::vector<Access> keptForTile() const {
    std::vector<Access> kept = readAgain();
    if (!isGpu())
      return kept;
    for (const GroupRoot &root : space.roots)
      for (const RootAccess &access : root.accesses) {
        AffineMap map = inSpace(root, access);
        auto isKept = [&](const Access &other) {
          return other.second->tensor == access.tensor && inSpace(*other.first, *other.second) == map;
        };
        if (mayBeKept(root, access) && repeatsInTile(root, map) && llvm::none_of(kept, isKept))
          kept.push_back({&root, &access});
      }
    return kept;
  }

  bool repeatsInTile(const GroupRoot &reader, AffineMap map) const {
    SmallVector<int64_t> places; // of the nest
    for (const GroupRoot &root : space.roots)
      for (int64_t place : root.dims)
        if (root.nest == reader.nest && place >= 0 && space.tiles[place] > 1)
          places.push_back(place);
    llvm::sort(places);
    return isReadAgain(map, places);
  }

  /// The index of an access over the dims of the space.
  AffineMap inSpace(const GroupRoot &root, const RootAccess &access) const {
    return overSpace(access.map, root.dims, space.extents.size());
  }

  std::vector<Value> tileStaged() const {
    std::vector<Value> staged;
    for (auto [root, access] : readAgain())
      if (!llvm::is_contained(staged, access->tensor))
        staged.push_back(access->tensor);
    return staged;
  }

  int64_t sliceBytes(const GroupRoot &root, const RootAccess &access) const {
    int64_t bytes = elementBytesOf(access.tensor);
    for (int64_t size :
         bufferedSliceShape(inSpace(root, access), space.extents, space.tiles, bytes, isGpu() && contracts()))
      bytes *= size;
    return bytes;
  }

  bool usesGrid(const GroupRoot &root, AffineMap map) const {
    for (auto [dim, place] : llvm::enumerate(root.dims))
      if (place >= 0 && isGrid(place) && map.isFunctionOfDim(dim))
        return true;
    return false;
  }

  /// Inputs that every tile reads, kept for the workgroup.
  std::vector<Value> workgroupStaged() const {
    std::vector<Value> staged;
    int64_t bytes = 0;
    if (isGpu() || space.numTiles() <= space.workgroups)
      return staged;
    for (const GroupRoot &root : space.roots)
      for (const RootAccess &access : root.accesses) {
        int64_t own = tensorBytes(access.tensor);
        bool scalar = cast<RankedTensorType>(access.tensor.getType()).getNumElements() == 1;
        if (access.producer >= 0 || isContraction(root) || scalar || usesGrid(root, access.map) ||
            bytes + own > kWorkgroupStaging || llvm::is_contained(staged, access.tensor))
          continue;
        staged.push_back(access.tensor);
        bytes += own;
      }
    return staged;
  }

  /// Where the kernel moves more than the outermost cache holds, its large outputs are gone from it before they are
  /// read; a plain store would even read them first.
  std::vector<Value> streamed() const {
    int64_t cache = 0;
    for (const MemoryLevel &level : target.levels)
      cache = std::max(cache, level.capacityBytes);
    double bytes = workOf(graph, space).globalBytes();
    std::vector<Value> outputs;
    for (Value tensor : space.outputs)
      if (bytes > static_cast<double>(cache) && tensorBytes(tensor) > cache / kStreams)
        outputs.push_back(tensor);
    return outputs;
  }

  const TensorGraph &graph;
  const GroupChoice &part;
  const Target &target;
  IterationSpace &space;
  mutable std::map<int64_t, SmallVector<WalkPhase>> phases; ///< known ones, by walked dim
  int64_t wanted = 0;                                       ///< workgroups; 0: not known yet
};
} // namespace

std::string tilewright::chooseTiles(const TensorGraph &graph, const GroupChoice &part, const Target &target,
                                    IterationSpace &space) {
  return TileChooser(graph, part, target, space).choose();
}

std::string tilewright::takeTiles(const TensorGraph &graph, const GroupChoice &part, const Target &target,
                                  IterationSpace &space, ArrayRef<int64_t> tiles) {
  return TileChooser(graph, part, target, space).take(tiles);
}

std::string tilewright::takeBlock(const TensorGraph &graph, const GroupChoice &part, const Target &target,
                                  IterationSpace &space, const BlockCandidate &block) {
  return TileChooser(graph, part, target, space).take(block);
}

std::vector<BlockCandidate> tilewright::blockCandidates(const TensorGraph &graph, const GroupChoice &part,
                                                        const Target &target, IterationSpace space) {
  return TileChooser(graph, part, target, space).blocks();
}

std::optional<BlockCandidate> tilewright::blockOfTiles(const TensorGraph &graph, const GroupChoice &part,
                                                       const Target &target, IterationSpace space, ArrayRef<int64_t> tiles,
                                                       int64_t threads) {
  return TileChooser(graph, part, target, space).block(tiles, threads);
}
