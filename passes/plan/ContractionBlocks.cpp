#include "passes/plan/ContractionBlocks.h"

#include "passes/cost/SumTiling.h"
#include "passes/plan/ContractionKernel.h"
#include "passes/plan/Work.h"
#include "passes/target/Warpgroups.h"

using namespace mlir;
using namespace tilewright;

namespace {
constexpr int64_t kMostTile = 256, kLeastLanes = 16;
constexpr int64_t kMostSums = 64;      ///< of a thread; with strict numerics threads take the same tiles
constexpr double kStartSeconds = 1e-6; ///< to begin a block, and to store its sums
constexpr double kBankBytes = 128;     ///< that shared memory gives in a cycle
constexpr double kRunBytes = 64;       ///< that DRAM gives at once
constexpr int64_t kMostTermUnits = 8;
constexpr double kReadOnce = 0.5;     ///< of what threads read from it, the rest is broadcast
constexpr double kSpecialLanes = 16;  ///< special functions of an SM in a cycle
constexpr int64_t kMostThreads = 256; ///< of a block without rows that have to be whole
constexpr int64_t kDescribedAlignment = 1024; ///< of what wgmma reads, behind buffers
// mma.sync on an H100: Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture" (2024).
constexpr double kSingleWarpShare = 0.63;
constexpr double kWorthwhile = 0.97;  ///< of the time before, for another block to be taken

/// A contraction of the part, with the places of its dims in the space.
struct Product {
  const PartRoot *root = nullptr;
  MicroKernel kernel;
  std::optional<MicroKernel> groupKernel; ///< of warpgroups
  int64_t row = -1, lane = -1; ///< places; -1: none
  double terms = 1;            ///< of a sum
  int64_t longest = 1;         ///< the reduced dim that is walked in steps
  int64_t rowBytes = 1, laneBytes = 1;
  bool rowsResident = false, lanesResident = false;   ///< what another nest leaves in shared memory
  bool rowsAlongTerms = true, lanesAlongTerms = true; ///< how the operands lie
};

int64_t bytesOf(Value tensor) { return tile::elementBytes(cast<RankedTensorType>(tensor.getType()).getElementType()); }

class BlockChooser {
public:
  BlockChooser(const TensorGraph &graph, const Target &target, IndexSpace &space, int64_t walked,
               llvm::function_ref<int64_t()> footprint)
      : graph(graph), target(target), space(space), walked(walked), footprint(footprint) {}

  std::string choose() {
    if (std::string why = collect(); !why.empty())
      return why;
    space.group = 0;
    tryBlocks();
    if (takeWarpgroups())
      tryBlocks();
    if (quickest == std::numeric_limits<double>::infinity())
      return whyNone.empty() ? "no tile of its contractions fits a block" : whyNone;
    space = best;
    return "";
  }

private:
  bool isGrid(int64_t dim) const { return llvm::is_contained(space.grid, dim); }

  /// Whether all contractions can be theirs: they read no buffers, whose lines lie otherwise.
  bool takeWarpgroups() {
    for (Product &product : products) {
      if (!product.groupKernel || product.rowsResident || product.lanesResident)
        return false;
      product.kernel = *product.groupKernel;
    }
    return true;
  }

  void tryBlocks() {
    const Product &first = products.front();
    space.block = first.kernel.block;
    space.speed = first.kernel.speed;
    for (int64_t blocks : walkedSizes())
      for (int64_t threads : {256, 128, 64, 512})
        for (int64_t rows : sizesOf(first.row, leastRows()))
          for (int64_t lanes : sizesOf(first.lane, kLeastLanes)) {
            if (threads > kMostThreads && !handsOver)
              continue; // a tile of its own can be smaller instead
            setTile(first.row, rows);
            setTile(first.lane, lanes);
            if (walked >= 0)
              space.tiles[walked] = blocks;
            for (int64_t termUnits = 1; termUnits <= mostTermUnits(); termUnits *= 2)
              consider(threads, termUnits);
          }
  }

  std::string collect() {
    for (const PartRoot &root : space.roots) {
      const TensorExpr &expr = graph.exprs()[root.expr];
      if (expr.kind != ExprKind::contraction) {
        handsOver |= expr.kind == ExprKind::reduction;
        continue;
      }
      handsOver |= llvm::any_of(root.accesses, [](const RootAccess &access) { return access.producer >= 0; });
      std::optional<ContractionRoles> roles = rolesOf(graph, root);
      std::optional<MicroKernel> kernel = microKernelFor(graph, root, target, /*strict=*/false);
      if (!roles || !kernel)
        return "no micro kernel of the target computes the contraction";
      Product product;
      product.root = &root;
      product.kernel = *kernel;
      product.groupKernel = warpgroupKernelFor(graph, root, target);
      product.row = roles->row < 0 ? -1 : root.dims[roles->row];
      product.lane = root.dims[roles->lane];
      for (int64_t dim : expr.reductions) {
        product.terms *= static_cast<double>(expr.domain[dim]);
        product.longest = std::max(product.longest, expr.domain[dim]);
      }
      product.rowBytes = bytesOf(root.accesses[roles->rowInput].tensor);
      product.laneBytes = bytesOf(root.accesses[roles->laneInput].tensor);
      product.rowsResident = root.accesses[roles->rowInput].producer >= 0;
      product.lanesResident = root.accesses[roles->laneInput].producer >= 0;
      product.rowsAlongTerms = roles->row < 0 || !liesAlong(root.accesses[roles->rowInput].map, roles->row);
      product.lanesAlongTerms = !liesAlong(root.accesses[roles->laneInput].map, roles->lane);
      products.push_back(product);
    }
    return "";
  }

  static bool liesAlong(AffineMap map, int64_t dim) {
    return map.getNumResults() > 0 && unitStrideDim(map.getResult(map.getNumResults() - 1)) == dim;
  }

  /// Terms are shared where the sums of a block are all there is: other nests would wait.
  int64_t mostTermUnits() const { return handsOver || isOfWarpgroup(space.block) ? 1 : kMostTermUnits; }

  /// Of a row dim: warps multiply as many rows either way.
  int64_t leastRows() const {
    const MicroKernel &kernel = products.front().kernel;
    return kernel.unit == StepUnit::thread ? 1 : kernel.block.rows;
  }

  /// Of the walked dim: whole, or blocks that leave no rest if some do.
  SmallVector<int64_t> walkedSizes() const {
    if (walked < 0)
      return {1};
    SmallVector<int64_t> sizes = {space.extents[walked]};
    for (int64_t size : {128, 64, 32})
      if (size < space.extents[walked])
        sizes.push_back(size);
    return sizes;
  }

  /// How often a tile computes what the product has of it: once for each block of a dim that the product does not sum.
  double timesOf(const Product &product) const {
    const TensorExpr &expr = graph.exprs()[product.root->expr];
    for (auto [dim, place] : llvm::enumerate(product.root->dims))
      if (walked >= 0 && place == walked && !llvm::is_contained(expr.reductions, static_cast<int64_t>(dim)))
        return static_cast<double>(space.blocksPerTile());
    return 1;
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

  int64_t tileOf(int64_t place) const { return place < 0 ? 1 : space.tiles[place]; }

  /// Of the tensor cores' rate, what instructions of single warps reach where there are others.
  double tensorShare(const MicroKernel &kernel) const {
    return kernel.unit == StepUnit::warp && !isOfWarpgroup(kernel) && target.has(kWarpgroupFeature) ? kSingleWarpShare : 1;
  }

  /// The seconds in which an SM does its blocks' share of one contraction, `together` of them at a time.
  double productSeconds(const Product &product, const SumTiling &tiling, double together, int64_t threads) const {
    double clock = target.gpu.clockHz;
    double speed = product.kernel.speed * (tensorShare(product.kernel));
    double perSm = target.flopsPerSecond / 2 * speed / static_cast<double>(target.cores);
    double times = timesOf(product);
    double multiply = times * static_cast<double>(tiling.rows * tiling.lanes) * product.terms / perSm;
    double l2 = bytesOfBlock(product) * static_cast<double>(target.cores) / l2Bandwidth();
    double units = product.kernel.unit == StepUnit::thread
                       ? static_cast<double>(threads) * kReadOnce
                       : static_cast<double>(threads / threadsOfStep(product.kernel));
    double read = times * units * product.terms *
                  static_cast<double>(tiling.ownRows * product.rowBytes + tiling.ownLanes * product.laneBytes) /
                  static_cast<double>(tiling.termUnits);
    double added =
        2.0 * static_cast<double>((tiling.termUnits - 1) * tiling.sumThreads * tiling.sums * tiling.sumBytes);
    double banks = (read + added) / (kBankBytes * clock);
    double busy = together * std::max({multiply, l2, banks});
    // The first step comes from DRAM; each waits for its copies if those behind it do not cover that. What no other
    // block reads comes from DRAM in all of them.
    double steps = times * std::ceil(product.terms / static_cast<double>(tiling.step));
    double found = streams(product) ? target.gpu.dramCycles : target.gpu.l2Cycles;
    double waits = (target.gpu.dramCycles + steps * found / static_cast<double>(tiling.stages - 1)) / clock;
    double meets = tiling.termUnits > 1 ? 2 * target.barrierSeconds : 0;
    return std::max(busy, waits) + meets;
  }

  /// Whether each block has lanes of its own: one tile has all rows.
  bool streams(const Product &product) const {
    return !product.lanesResident && (product.row < 0 || space.extents[product.row] <= space.tiles[product.row]);
  }

  /// In which DRAM gives the lane operands that blocks stream, each by as many SMs as there are blocks.
  double streamSeconds(const Product &product, double blocks) const {
    if (!streams(product))
      return 0;
    double lanes = static_cast<double>(tileOf(product.lane) * product.laneBytes);
    double run = product.lanesAlongTerms ? kRunBytes : std::min(lanes, kRunBytes);
    double share = std::min(1.0, blocks / static_cast<double>(target.cores));
    return blocks * timesOf(product) * product.terms * lanes * (kRunBytes / run) /
           (target.levels.back().bandwidth * share);
  }

  /// Of the operands, past L1.
  double bytesOfBlock(const Product &product) const {
    return timesOf(product) * product.terms *
           static_cast<double>((product.rowsResident ? 0 : tileOf(product.row) * product.rowBytes) +
                               (product.lanesResident ? 0 : tileOf(product.lane) * product.laneBytes));
  }

  double l2Bandwidth() const {
    for (const MemoryLevel &level : target.levels)
      if (level.space == tile::Space::global)
        return level.bandwidth; // innermost first
    return target.levels.back().bandwidth;
  }

  /// The seconds in which an SM does what lies between a block's contractions: shared memory and special functions.
  double betweenSeconds() const {
    PartWork work = workOf(graph, space);
    double tiles = static_cast<double>(space.numTiles()), clock = target.gpu.clockHz;
    return (work.blockBytes / kBankBytes + work.special / kSpecialLanes) / tiles / clock;
  }

  /// Tiles grow from candidate to candidate: the first one says what the least of them would need.
  void refuse(std::string why) {
    if (whyNone.empty())
      whyNone = std::move(why);
  }

  void consider(int64_t threads, int64_t termUnits) {
    if (threads > target.gpu.threadsPerBlock)
      return;
    BlockWork work;
    work.blocks = space.numTiles();
    work.threads = threads;
    SmallVector<SumTiling> tilings;
    int64_t scratch = 0;
    for (const Product &product : products) {
      SumTile tile{tileOf(product.row), tileOf(product.lane), product.longest,
                   product.rowBytes,    product.laneBytes,    product.rowsAlongTerms};
      std::string why;
      std::optional<SumTiling> tiling = tileSums(tile, threads, product.kernel, &why, termUnits);
      if (!tiling && termUnits > 1)
        return; // what one alone would need has been said
      if (!tiling)
        return refuse(why);
      if (tiling->sums > kMostSums)
        return;
      scratch = std::max(scratch, tiling->sharedBytes());
      work.registers = std::max(work.registers, tiling->registers());
      tilings.push_back(*tiling);
    }
    work.registers = std::min(work.registers, target.gpu.registersPerThread);
    work.sharedBytes = llvm::alignTo(footprint(), isOfWarpgroup(space.block) ? kDescribedAlignment : 1) + scratch;
    if (work.sharedBytes > target.blockBytes)
      return refuse("a block's operands and buffers take " + std::to_string(work.sharedBytes) +
                    " bytes; the target has " + std::to_string(target.blockBytes));
    int64_t resident = residentBlocks(target.gpu, threads, work.sharedBytes, work.registers);
    if (resident == 0)
      return;
    double slots = static_cast<double>(resident * target.cores), blocks = static_cast<double>(work.blocks);
    double waves = std::ceil(blocks / slots);
    double together = std::min<double>(resident, std::ceil(blocks / static_cast<double>(target.cores)));
    double seconds = kStartSeconds, bytes = 0, stream = 0;
    for (auto [product, tiling] : llvm::zip(products, tilings)) {
      seconds += productSeconds(product, tiling, together, threads);
      bytes += blocks * bytesOfBlock(product);
      stream += streamSeconds(product, blocks);
    }
    if (handsOver)
      seconds += together * betweenSeconds();
    seconds = std::max(seconds * waves, stream);
    // Of blocks that take as long, those that read least.
    if (seconds > kWorthwhile * quickest && (seconds > quickest || bytes >= leastBytes))
      return;
    quickest = seconds;
    leastBytes = bytes;
    space.threads = threads;
    space.termUnits = termUnits;
    space.latencySeconds = seconds;
    space.blockWork = work;
    best = space;
  }

  const TensorGraph &graph;
  const Target &target;
  IndexSpace &space;
  int64_t walked;
  llvm::function_ref<int64_t()> footprint;
  std::vector<Product> products;
  bool handsOver = false; ///< a contraction or a reduction reads what another nest leaves in shared memory
  double quickest = std::numeric_limits<double>::infinity(), leastBytes = 0;
  std::string whyNone;
  IndexSpace best;
};
} // namespace

std::string tilewright::chooseContractionBlock(const TensorGraph &graph, const Target &target, IndexSpace &space,
                                               int64_t walked, llvm::function_ref<int64_t()> footprint) {
  return BlockChooser(graph, target, space, walked, footprint).choose();
}
