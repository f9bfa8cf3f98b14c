#include "passes/plan/tiling/CpuTiles.h"

#include "dialects/tile/TileAttributeNames.h"
#include "passes/graph/ElementBytes.h"
#include "passes/layout/Blocking.h"
#include "passes/plan/space/ContractionKernel.h"
#include "passes/plan/space/OverlappingWindows.h"
#include "passes/plan/space/Work.h"
#include "passes/plan/tiling/TileSizes.h"
#include "passes/target/AccessBytes.h"
#include "passes/target/LaneBytes.h"

using namespace mlir;
using namespace tilewright;

/// Number of tilings, the fastest by arithmetic and traffic, whose movement is counted: a bound of the search.
constexpr size_t kWeighed = 12;

/// Returns the size of even tiles with at most `limit` elements, in multiples of `unit`.
static int64_t evenTile(int64_t extent, int64_t limit, int64_t unit) {
  if (extent <= limit)
    return extent;
  int64_t pieces = llvm::divideCeil(extent, limit);
  return std::min<int64_t>(extent, llvm::alignTo(llvm::divideCeil(extent, pieces), unit));
}

void CpuTiles::choose() {
  if (contracts()) {
    chooseContractionTiles();
  } else {
    if (space.vector >= 0 && isGrid(space.vector))
      chooseVectorTile();
    fillCacheLines();
    joinWindows();
    growSmallTiles();
  }
}

int64_t CpuTiles::wantedWorkgroups() {
  if (wanted == 0) {
    GroupWork work = workOf(graph, space, target);
    work.workgroups = 1;
    double seconds = predictKernel(work, target).seconds - target.launchSeconds;
    wanted = std::clamp<int64_t>(static_cast<int64_t>(seconds / costs().workgroupSeconds), 1, mostWorkgroups());
  }
  return wanted;
}

bool CpuTiles::fits() const {
  return footprint.bytes() <= std::min(target.blockBytes, target.level(tile::Space::block).capacityBytes / 2);
}

void CpuTiles::chooseContractionTiles() {
  setRegisterBlock();
  setRowsOfFactors();
  space.leastRows = rowsPerPanel();
  space.cacheBytes = target.level(tile::Space::block).capacityBytes;
  std::vector<Tiling> tilings = contractionTilings();
  llvm::stable_sort(tilings, [](const Tiling &a, const Tiling &b) { return a.seconds < b.seconds; });
  std::vector<OperatorChain> chains = chainsOf(graph, group.exprs, space);
  Tiling best{{}, std::numeric_limits<double>::infinity()};
  for (Tiling &tiling : llvm::MutableArrayRef(tilings).take_front(kWeighed)) {
    if (tiling.seconds >= best.seconds)
      break; // movement only adds time
    space.tiles = tiling.tiles;
    tiling.seconds = withMovement(chains, tiling.seconds);
    if (tiling.seconds < best.seconds)
      best = tiling;
  }
  space.tiles = best.tiles;
}

std::vector<CpuTiles::Tiling> CpuTiles::contractionTilings() {
  std::vector<Tiling> found;
  int64_t row = mDim(), walked = walkableDim(graph, group, space);
  space.counted = countedAlong(graph, group, space.roots, walked);
  for (int64_t blocks : walkedTiles(walked))
    for (int64_t rows : mTiles(row))
      for (int64_t lanes : nTiles()) {
        if (row >= 0)
          space.tiles[row] = rows;
        if (space.vector >= 0)
          space.tiles[space.vector] = lanes;
        if (walked >= 0)
          space.tiles[walked] = blocks;
        bool whole = walked < 0 || blocks == space.extents[walked];
        found.push_back({space.tiles, contractionSeconds() / (whole ? 1 : 1 - target.costs.confidence.forms)});
      }
  return found;
}

double CpuTiles::withMovement(ArrayRef<OperatorChain> chains, double seconds) {
  space.footprintBytes = footprint.bytes();
  space.workgroups = std::min(mostWorkgroups(), space.numTiles());
  std::vector<LevelMovement> levels = movementIn(graph, space, chains, target);
  for (const LevelMovement &level : levels)
    seconds = std::max(seconds, level.seconds);
  return levels.empty() ? seconds : seconds + costs().exposedFill * levels.front().seconds;
}

SmallVector<int64_t> CpuTiles::walkedTiles(int64_t dim) const {
  SmallVector<int64_t> sizes = {dim < 0 ? 1 : space.extents[dim]};
  for (int64_t limit = costs().longestBlock; dim >= 0 && limit >= costs().shortestBlock; limit /= 2)
    if (limit < space.extents[dim])
      sizes.push_back(evenTile(space.extents[dim], limit, costs().tileUnit));
  return sizes;
}

void CpuTiles::setRegisterBlock() {
  for (const GroupRoot &root : space.roots)
    if (std::optional<MicroKernel> kernel = microKernelFor(graph, root, target, space.numerics)) {
      space.block = kernel->blockFor(target);
      space.speed = kernel->speed;
      // It is decided later whether blocks of K are taken.
      if (std::optional<ContractionRoles> roles = rolesOf(graph, root))
        space.rowsToCopy = leastRowsToCopy(*kernel, space.block,
                                           space.block.vectors * target.lanes() *
                                               elementBytesOf(root.accesses[roles->rhsInput].tensor),
                                           /*blocksK=*/false, costs());
      return;
    }
}

double CpuTiles::rowsPerPanel() const {
  double multiplications = target.flopsPerSecond / 2, lanes = target.level(tile::Space::block).bandwidth / kLaneBytes;
  return std::min<double>(space.block.rows, multiplications / lanes);
}

double CpuTiles::contractionSeconds() {
  space.footprintBytes = footprint.bytes();
  space.workgroups = std::min(mostWorkgroups(), space.numTiles());
  // Tiles that exceed the block memory are a last resort. They are refused later if they do not fit at all.
  double penalty = space.footprintBytes > target.blockBytes ? 1e3 : 1;
  return predictKernel(workOf(graph, space, target), target).seconds * penalty +
         costs().tileSeconds * space.numTiles() * space.blocksPerTile() * space.countedShare() / target.cores +
         costs().rowJumpSeconds *
             (runsOfStreams(graph, space, target) + piecesOfWindows(graph, space, target)) / target.cores;
}

/// Returns the dim of the space that is M of a contraction, or -1.
int64_t CpuTiles::mOf(const GroupRoot &root) const {
  std::optional<ContractionRoles> roles = isContraction(root) ? rolesOf(graph, root) : std::nullopt;
  return roles && roles->m >= 0 ? root.dims[roles->m] : -1;
}

bool CpuTiles::hasFactors(const GroupRoot &root) const { return graph.exprs()[root.expr].op->hasAttr(kFactorsAttr); }

int64_t CpuTiles::mDim() const {
  for (const GroupRoot &root : space.roots)
    if (int64_t place = mOf(root); place >= 0 && isGrid(place) && !hasFactors(root))
      return place;
  return -1;
}

/// Register blocks have all rows of a matrix that is known.
void CpuTiles::setRowsOfFactors() {
  for (const GroupRoot &root : space.roots)
    if (int64_t place = hasFactors(root) ? mOf(root) : -1; place >= 0)
      space.tiles[place] = space.extents[place];
}

SmallVector<int64_t> CpuTiles::mTiles(int64_t row) const {
  if (row < 0)
    return {1};
  SmallVector<int64_t> sizes;
  int64_t extent = space.extents[row], block = space.block.rows;
  for (int64_t pieces = 1, most = llvm::divideCeil(extent, block); pieces <= most;
       pieces = pieces < 8 ? pieces + 1 : pieces + pieces / 2) {
    int64_t size = llvm::divideCeil(extent, pieces);
    sizes.push_back(pieces == 1 ? extent : std::min<int64_t>(extent, llvm::alignTo(size, block)));
    if (extent % pieces == 0 && sizes.back() != size)
      sizes.push_back(size);
  }
  return sizes;
}

SmallVector<int64_t> CpuTiles::nTiles() const {
  if (space.vector < 0 || !isGrid(space.vector))
    return {space.vector < 0 ? 1 : space.extents[space.vector]};
  // Tiles are even, since a shorter last tile would leave a core idle.
  SmallVector<int64_t> sizes = {space.extents[space.vector]};
  int64_t lanes = space.block.vectors * target.vectorBytes / kLaneBytes;
  int64_t blocks = llvm::divideCeil(sizes[0], lanes);
  for (int64_t pieces = 2; pieces <= blocks; pieces = pieces < 8 ? pieces + 1 : pieces + pieces / 2)
    sizes.push_back(llvm::divideCeil(blocks, pieces) * lanes);
  return sizes;
}

void CpuTiles::chooseVectorTile() {
  bool reduces =
      llvm::any_of(space.roots, [&](const GroupRoot &root) { return !graph.exprs()[root.expr].oneReliesOnOne(); });
  int64_t limit = space.rowsInLanes ? costs().rowsTile : reduces ? costs().reducedTile : costs().elementwiseTile;
  int64_t unit = space.rowsInLanes ? space.lanes : costs().tileUnit, extent = space.extents[space.vector];
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

void CpuTiles::fillCacheLines() {
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
        evenTile(space.extents[space.vector], std::min(costs().reducedTile, space.tiles[space.vector]),
                 costs().tileUnit);
  if (!fits() || space.numTiles() < wantedWorkgroups())
    space.tiles = before;
}

void CpuTiles::fillCacheLine(const GroupRoot &root, AffineMap map, Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  for (int64_t position = type.getRank() - 1; position >= 0; --position) {
    if (type.getDimSize(position) == 1)
      continue;
    int64_t dim = unitStrideDim(map.getResult(position)), place = dim < 0 ? -1 : root.dims[dim];
    if (place >= 0 && isGrid(place) && place != space.vector)
      space.tiles[place] =
          std::min(space.extents[place],
                   std::max(space.tiles[place], kCpuLineBytes / tile::elementBytes(type.getElementType())));
    return;
  }
}

/// Where the preferred number of windows, those that are reduced at once, does not divide the extent, the largest other
/// one is the next best.
int64_t CpuTiles::windowsOfTile(int64_t extent) const {
  if (extent % costs().windowsTogether == 0)
    return costs().windowsTogether;
  int64_t most = costs().windowsOfTile;
  while (extent % most != 0)
    --most;
  return most;
}

void CpuTiles::joinWindows() {
  for (const GroupRoot &root : space.roots) {
    int64_t dim = windowDim(graph, space, root, target);
    if (dim < 0 || !isGrid(dim))
      continue;
    int64_t before = space.tiles[dim], extent = space.extents[dim];
    if (before == 1) {
      space.tiles[dim] = windowsOfTile(extent);
    } else {
      while (extent % space.tiles[dim] != 0)
        --space.tiles[dim];
      if (2 * space.tiles[dim] < before)
        space.tiles[dim] = before;
    }
    if (!fits() || space.numTiles() < wantedWorkgroups())
      space.tiles[dim] = before;
  }
}

int64_t CpuTiles::pointsPerTile() const {
  int64_t most = 1;
  for (const GroupRoot &root : space.roots) {
    int64_t points = 1;
    for (int64_t dim : root.dims)
      points *= dim < 0 ? 1 : space.tiles[dim];
    most = std::max(most, points);
  }
  return most;
}

void CpuTiles::growSmallTiles() {
  bool runs = llvm::any_of(space.roots, [](const GroupRoot &root) { return root.reference >= 0; });
  int64_t least = runs && footprint.streamed().empty() ? costs().onlineSoftmaxTile : costs().smallTile;
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
