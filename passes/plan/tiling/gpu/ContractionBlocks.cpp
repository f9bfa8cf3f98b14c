#include "passes/plan/tiling/gpu/ContractionBlocks.h"

#include "passes/graph/Rounding.h"
#include "passes/cost/GridPartition.h"
#include "passes/cost/ProductCost.h"
#include "passes/cost/GemmTiling.h"
#include "passes/plan/tiling/gpu/L2Traffic.h"
#include "passes/plan/space/ContractionKernel.h"
#include "passes/plan/tiling/gpu/CopyWidths.h"
#include "passes/plan/space/LiveBuffers.h"
#include "passes/plan/space/TileGrowth.h"
#include "passes/plan/space/WalkedDim.h"
#include "passes/plan/space/Work.h"
#include "passes/target/AllowedProducts.h"
#include "passes/target/Warpgroups.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tilewright;

namespace {
constexpr int64_t kMostTile = 256, kLeastLanes = 16;
constexpr int64_t kMostAccumulators = 64;      ///< of a thread that loads what it multiplies
constexpr double kStartSeconds = 1e-6; ///< to begin a block, and to store its sums
constexpr double kBeside = 0.15; ///< of what DRAM and SMs do at the same time, the shorter: they begin and end apart
constexpr double kRunBytes = 64; ///< that DRAM gives at once
constexpr int64_t kMostKSlices = 8, kFewRows = 64;
constexpr double kSpecialLanes = 16; ///< special functions of an SM in a cycle
constexpr int64_t kThreads[] = {256, 128, 64, 512};
constexpr int64_t kMostThreads = 256; ///< of a block without rows that have to be whole
constexpr int64_t kSlotAlignment = 128;
constexpr double kWorthwhile = 0.97; ///< of the time before, for another block to be taken
constexpr size_t kMostTiles = 96;    ///< that are predicted

/// A contraction of the part, with the places of its dims in the space.
struct Product {
  const GroupRoot *root = nullptr;
  unsigned rowInput = 0;
  MicroKernel kernel;
  std::optional<MicroKernel> groupKernel; ///< of warpgroups
  int64_t row = -1, lane = -1;            ///< places; -1: none
  double terms = 1;                       ///< of a sum
  int64_t longest = 1;                    ///< the reduced dim that is walked in steps
  int64_t rowBytes = 1, laneBytes = 1;
  double rowCopies = 0, laneCopies = 0;               ///< instructions of a thread to copy an element of either operand
  bool rowsResident = false, lanesResident = false;   ///< what another nest leaves in shared memory
  bool lhsAlongK = true, rhsAlongK = true; ///< how the operands lie
  bool rowsShifted = false, lanesShifted = false;     ///< lines begin anywhere in a word
  bool alongK = true;                             ///< the same terms lie innermost in both
  bool rowsWalked = false;                            ///< blocks of the walked dim have rows of their own
  bool inOrder = false;                               ///< strict numerics add up narrow floats as the graph does
};

int64_t bytesOf(Value tensor) { return tile::elementBytes(cast<RankedTensorType>(tensor.getType()).getElementType()); }

class BlockChooser {
public:
  BlockChooser(const TensorGraph &graph, const Target &target, IterationSpace &space, int64_t walked,
               llvm::function_ref<int64_t()> footprint)
      : graph(graph), target(target), space(space), walked(walked), footprint(footprint) {}

  std::vector<BlockCandidate> search(std::string &why) {
    if (why = collect(); !why.empty())
      return {};
    space.group = 0;
    space.threads = std::max(space.threads, kThreads[0]); // until one is chosen: it is a GPU
    tryTiles();
    if (haveRowsForWarpgroups() && takeWarpgroups())
      tryTiles();
    if (found.empty())
      why = whyNone.empty() ? "no tile of its contractions fits a block" : whyNone;
    return ranked();
  }

  std::optional<BlockWork> workWith(int64_t threads) {
    std::optional<Candidate> block = chosen(threads);
    return block ? std::optional(block->work) : std::nullopt;
  }

  double secondsWith(int64_t threads, double blocks, double together) {
    std::optional<Candidate> block = chosen(threads);
    return block ? secondsOf(*block, blocks, together) : std::numeric_limits<double>::infinity();
  }

  SharedTiles sharedWith(int64_t threads) {
    std::optional<Candidate> block = chosen(threads);
    if (!block || !isOneLoop())
      return {};
    const GemmTiling &tiling = block->tilings.front();
    return {stepsOf(products.front(), tiling), tiling.sums * tiling.accumulatorThreads * tiling.accumulatorBytes};
  }

  /// Each workgroup begins with the rest of a tile, leaves its sums, and ends with a part of one, to which it adds what
  /// those behind it have left.
  double sharedSecondsWith(int64_t threads, double blocks, double together) {
    std::optional<Candidate> block = chosen(threads);
    if (!block || !isOneLoop())
      return std::numeric_limits<double>::infinity();
    const GemmTiling &tiling = block->tilings.front();
    double tiles = static_cast<double>(block->work.blocks), steps = stepsOf(products.front(), tiling);
    double own = std::ceil(tiles * steps / blocks), begun = std::ceil(own / steps) + 1;
    Product share = products.front();
    share.terms = own * static_cast<double>(tiling.step);
    double row = static_cast<double>(tiling.sums * tiling.accumulatorThreads * tiling.accumulatorBytes);
    double found = target.gpu.l2Cycles / target.gpu.clockHz;
    double passed = found + row * static_cast<double>(target.cores) / l2Bandwidth(target);
    double exchange = (1 + std::ceil(steps / own)) * passed;
    double seconds = begun * (kStartSeconds + found) + together * exchange +
                     productSeconds(workOf(share), tiling, {blocks, together, block->work.threads}, target);
    return std::max(seconds, streamed(products.front(), tiling, tiles, blocks));
  }

private:
  /// Whether a tile is one contraction in one loop of steps, of sums that nothing else in the block waits for and that
  /// may be added up in parts.
  bool isOneLoop() const {
    const Product &product = products.front();
    return products.size() == 1 && !handsOver && walked < 0 && !target.has(kStrictFeature) && timesOf(product) == 1 &&
           isOneTerm(product);
  }

  /// Whether no SM has more than one of the blocks, and that no nest that sums but one.
  bool isAlone() const {
    return products.size() == 1 && !handsOver && walked < 0 && space.numTiles() <= static_cast<int64_t>(target.cores);
  }

  static int64_t stepsOf(const Product &product, const GemmTiling &tiling) {
    return llvm::divideCeil(product.longest, tiling.step);
  }

  bool isGrid(int64_t dim) const { return llvm::is_contained(space.grid, dim); }

  /// More than half of those that the instruction multiplies: a single one, which all of them would repeat, would be
  /// copied as often.
  bool haveRowsForWarpgroups() const {
    return llvm::all_of(products, [&](const Product &product) {
      return product.row >= 0 && 2 * space.extents[product.row] > kWarpgroupBlock.rows;
    });
  }

  /// Whether all contractions can be theirs.
  bool takeWarpgroups() {
    bool can = llvm::all_of(products, [](const Product &product) {
      return product.groupKernel && !product.lanesResident &&
             (!product.rowsResident || takesRowsFromBuffers(*product.groupKernel)) &&
             (product.alongK || !readsAlongK(*product.groupKernel));
    });
    for (Product &product : products)
      if (can)
        product.kernel = *product.groupKernel;
    return can;
  }

  void tryTiles() {
    const Product &first = products.front();
    space.block = first.kernel.block;
    space.speed = first.kernel.speed;
    SmallVector<int64_t> blocks = walkedSizes(), rows = sizesOf(first.row, leastRows()),
                         lanes = sizesOf(first.lane, kLeastLanes);
    auto setTiles = [&](TilePlace place) {
      if (walked >= 0)
        space.tiles[walked] = blocks[place[0]];
      setTile(first.row, rows[place[1]]);
      setTile(first.lane, lanes[place[2]]);
    };
    growTiles(
        {blocks.size(), rows.size(), lanes.size()}, kMostTiles,
        [&](TilePlace place) {
          setTiles(place);
          return bytesOfBlocks();
        },
        [&](TilePlace place) {
          setTiles(place);
          return considerTile();
        });
  }

  std::string collect() {
    for (const GroupRoot &root : space.roots) {
      const TensorExpr &expr = graph.exprs()[root.expr];
      if (expr.kind != ExprKind::contraction) {
        if (expr.kind != ExprKind::reduction)
          continue;
        handsOver = reduces = true;
        for (Type result : expr.op->getResultTypes())
          combinedBytes = std::max(combinedBytes, tile::elementBytes(cast<RankedTensorType>(result).getElementType()));
        continue;
      }
      handsOver |= llvm::any_of(root.accesses, [](const RootAccess &access) { return access.producer >= 0; });
      std::optional<ContractionRoles> roles = rolesOf(graph, root);
      std::optional<MicroKernel> kernel = microKernelFor(graph, root, target);
      if (!roles || !kernel)
        return "no micro kernel of the target computes the contraction";
      Product product;
      product.root = &root;
      product.rowInput = roles->rowInput;
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
      product.lhsAlongK = roles->row < 0 || !liesAlong(root.accesses[roles->rowInput].map, roles->row);
      product.rhsAlongK = !liesAlong(root.accesses[roles->laneInput].map, roles->lane);
      product.rowsShifted = beginsInsideWords(graph, root, roles->rowInput);
      product.lanesShifted = beginsInsideWords(graph, root, roles->laneInput);
      product.rowCopies = copyInstructions(root, roles->rowInput, product.rowsShifted);
      product.laneCopies = copyInstructions(root, roles->laneInput, product.lanesShifted);
      for (auto [dim, place] : llvm::enumerate(root.dims))
        product.rowsWalked |= place >= 0 && place == walked && root.accesses[roles->rowInput].map.isFunctionOfDim(dim);
      product.alongK = lieAlongK(expr, root.accesses[roles->rowInput].map, root.accesses[roles->laneInput].map);
      Type stored = getElementTypeOrSelf(expr.op->getResult(0).getType());
      product.inOrder = target.has(kStrictFeature) && isNarrowFloat(stored);
      products.push_back(product);
    }
    return "";
  }

  /// Of a thread for each element of an operand, addresses included.
  double copyInstructions(const GroupRoot &root, unsigned operand, bool shifted) const {
    const RootAccess &access = root.accesses[operand];
    if (access.producer >= 0)
      return 0;
    int64_t together = shifted ? pieceBytes(graph, root, operand) : copyBytes(graph, root, operand);
    return (shifted ? kShiftedCopyInstructions : kCopyInstructions) * static_cast<double>(bytesOf(access.tensor)) /
           static_cast<double>(together);
  }

  static bool liesAlong(AffineMap map, int64_t dim) {
    return map.getNumResults() > 0 && unitStrideDim(map.getResult(map.getNumResults() - 1)) == dim;
  }

  /// Terms are shared where the sums of a block are all there is, since other nests would wait, and where they are few:
  /// with more, warps have enough of them, and what is done with the sums would be left to one of those.
  int64_t mostKSlices() const {
    auto mayShare = [&](const Product &product) {
      int64_t rows = product.row < 0 ? 1 : space.extents[product.row], lanes = space.extents[product.lane];
      return !product.inOrder &&
             (rows <= kFewRows || rows * lanes <= static_cast<int64_t>(target.cores) * kMostThreads);
    };
    return handsOver || isOfWarpgroup(space.block) || !llvm::all_of(products, mayShare) ? 1 : kMostKSlices;
  }

  /// Of a row dim: warps multiply as many rows either way.
  int64_t leastRows() const {
    const MicroKernel &kernel = products.front().kernel;
    return kernel.unit == StepUnit::thread ? 1 : kernel.block.rows;
  }

  /// Of the walked dim: blocks, or whole.
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

  /// How often a tile computes what the product has of it: for each point of its other dims, and once for each block of
  /// a dim that the product does not sum.
  double timesOf(const Product &product) const {
    const TensorExpr &expr = graph.exprs()[product.root->expr];
    double times = 1;
    for (auto [dim, place] : llvm::enumerate(product.root->dims)) {
      if (place < 0 || llvm::is_contained(expr.reductions, static_cast<int64_t>(dim)))
        continue;
      if (place != product.row && place != product.lane)
        times *= static_cast<double>(space.tiles[place]);
      if (place == walked)
        times *= static_cast<double>(space.blocksPerTile());
    }
    return times;
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

  ProductWork workOf(const Product &product) const {
    ProductWork work{product.kernel, timesOf(product), product.terms, bytesOfBlock(product)};
    work.rowBytes = product.rowBytes;
    work.laneBytes = product.laneBytes;
    work.rowCopies = product.rowCopies;
    work.laneCopies = product.laneCopies;
    work.combinesRows = reduces;
    return work;
  }

  /// Whether its first steps can be copied while the contraction before it is multiplied.
  bool beginsAhead(const Product &product) const {
    bool isFirst = &product == &products.front();
    if ((isFirst && !isPrefetchedInBlockBefore()) || (product.rowsResident && product.lanesResident))
      return false;
    return timesOf(product) == timesOf(isFirst ? products.back() : *(&product - 1));
  }

  /// Where blocks of a dim are walked, copies for the first contraction of a block begin during the last one of the
  /// block before.
  bool isPrefetchedInBlockBefore() const { return walked >= 0 && products.size() > 1 && space.blocksPerTile() > 1; }

  /// Whether the rows are the same in all blocks of the walked dim, and may stay in shared memory meanwhile.
  bool keepsRows(const Product &product) const {
    return walked >= 0 && space.blocksPerTile() > 1 && !product.rowsResident && !product.rowsWalked &&
           !roundsInSharedMemory(product.kernel) && isOneTerm(product) &&
           timesOf(product) == static_cast<double>(space.blocksPerTile()) &&
           tileOf(product.row) * product.longest * product.rowBytes <= GemmTiling::kMostKeptBytes;
  }

  /// Whether its terms are those of one dim.
  static bool isOneTerm(const Product &product) { return product.terms == static_cast<double>(product.longest); }

  /// Whether each block has lanes of its own: one tile has all rows.
  bool streams(const Product &product) const {
    return !product.lanesResident && (product.row < 0 || space.extents[product.row] <= space.tiles[product.row]);
  }

  /// In which DRAM gives the lane operand of all tiles, if they stream it.
  double streamed(const Product &product, const GemmTiling &tiling, double tiles, double blocks) const {
    if (!streams(product))
      return 0;
    double lanes = static_cast<double>(tileOf(product.lane) * product.laneBytes);
    double run = product.rhsAlongK ? kRunBytes : std::min(lanes, kRunBytes);
    double bytes = tiles * timesOf(product) * product.terms * lanes * (kRunBytes / run);
    return streamSeconds(bytes, tiling, blocks, target);
  }

  /// Of the operands, past L1.
  double bytesOfBlock(const Product &product) const {
    double rows = static_cast<double>(product.rowsResident ? 0 : tileOf(product.row) * product.rowBytes);
    double lanes = static_cast<double>(product.lanesResident ? 0 : tileOf(product.lane) * product.laneBytes);
    if (keepsRows(product))
      rows /= space.blocksPerTile();
    return timesOf(product) * product.terms * (rows + lanes);
  }

  /// The seconds in which an SM does what lies beside a block's contractions: shared memory, special functions, and
  /// the rest at the rate that so many threads reach.
  double besideSeconds(double threads) const {
    GroupWork work = tilewright::workOf(graph, space);
    double tiles = static_cast<double>(space.numTiles()), clock = target.gpu.clockHz;
    double light = work.elementwise / issuedLanes(threads);
    double cycles = (work.blockBytes / kBankBytes + work.special / kSpecialLanes + light) / tiles;
    return (cycles + fillCycles(threads)) / clock;
  }

  /// Threads that fill a buffer from global memory take one vector after another, and wait for each.
  double fillCycles(double threads) const {
    double turns = 0;
    for (const GroupRoot &root : space.roots) {
      const TensorExpr &expr = graph.exprs()[root.expr];
      if (expr.kind == ExprKind::contraction ||
          llvm::any_of(root.accesses, [](const RootAccess &access) { return access.producer >= 0; }))
        continue;
      double points = space.timesComputed(root) * expr.domainSize() / static_cast<double>(space.numTiles());
      turns += std::ceil(points / (threads * kMostLanes));
    }
    return turns * target.gpu.l2Cycles;
  }

  /// Tiles grow from candidate to candidate: the first one says what the least of them would need.
  void refuse(std::string why) {
    if (whyNone.empty())
      whyNone = std::move(why);
  }

  /// A block with the tiles as they are, and how its threads share each contraction.
  struct Candidate {
    BlockWork work;
    SmallVector<GemmTiling> tilings;
    bool ahead = false; ///< copies for a contraction begin while the one before it is multiplied
  };

  /// The block that the space says, but with so many threads.
  std::optional<Candidate> chosen(int64_t threads) {
    if (!collect().empty() || (isOfWarpgroup(space.block) && !takeWarpgroups()))
      return std::nullopt;
    return candidate(threads, space.kSlices);
  }

  /// Of what operands pass through.
  int64_t alignment() const { return isOfWarpgroup(space.block) ? kWarpgroupAlignment : kSlotAlignment; }

  /// What the steps of all contractions take where one begins behind the other, and where copies begin ahead; 0: none
  /// do.
  struct ScratchBytes {
    int64_t apart = 0, ahead = 0;
  };

  /// What a loop keeps is there beside the others.
  ScratchBytes scratchBytes(ArrayRef<GemmTiling> tilings, int64_t threads) const {
    auto bytesOf = [&](const GemmTiling &tiling) {
      return std::max(tiling.sharedBytes(), handsOver ? tiling.combiningBytes(threads, combinedBytes) : 0);
    };
    auto aligned = [&](const GemmTiling &tiling) -> int64_t { return llvm::alignTo(bytesOf(tiling), alignment()); };
    int64_t kept = 0, most = 0;
    for (const GemmTiling &tiling : tilings)
      if (tiling.keptSteps > 0)
        kept += aligned(tiling);
      else
        most = std::max(most, bytesOf(tiling));
    ScratchBytes bytes{kept + most, 0};
    for (auto [i, product] : llvm::enumerate(products)) {
      if (!beginsAhead(product))
        continue;
      const GemmTiling &own = tilings[i], &before = tilings[i == 0 ? tilings.size() - 1 : i - 1];
      int64_t both = (own.keptSteps > 0 ? 0 : bytesOf(own)) + (before.keptSteps > 0 ? 0 : aligned(before));
      bytes.ahead = std::max({bytes.ahead, bytes.apart, kept + both});
    }
    return bytes;
  }

  std::optional<Candidate> candidate(int64_t threads, int64_t kSlices) {
    if (threads > target.gpu.threadsPerBlock)
      return std::nullopt;
    Candidate block;
    block.work.blocks = space.numTiles();
    block.work.threads = threads;
    int64_t grown = 0;
    for (const Product &product : products) {
      GemmTile tile{tileOf(product.row), tileOf(product.lane),   product.longest, product.rowBytes,
                   product.laneBytes,   product.lhsAlongK, isAlone(),       product.rhsAlongK,
                   product.rowsShifted, product.lanesShifted};
      std::string why;
      std::optional<GemmTiling> tiling = chooseGemmTiling(tile, threads, product.kernel, &why, kSlices);
      if (!tiling) {
        if (kSlices == 1) // otherwise what one alone would need has been said
          refuse(why);
        return std::nullopt;
      }
      if ((tiling->loadsFactors || products.size() > 1) && tiling->sums > kMostAccumulators)
        return std::nullopt;
      tiling->overlaps &= !product.rowsResident;
      if (keepsRows(product))
        tiling->keepRows(product.longest);
      block.work.registers = std::max(block.work.registers, tiling->registers());
      if (growsInRegisters(graph, space, *product.root))
        grown += tiling->accumulatorRegisters();
      block.tilings.push_back(*tiling);
    }
    block.work.registers += grown > 0 ? grown + GemmTiling::kLoopRegisters : 0;
    block.work.registers = std::min(block.work.registers, target.gpu.registersPerThread);
    int64_t buffers = llvm::alignTo(footprint(), isOfWarpgroup(space.block) ? kWarpgroupAlignment : 1);
    ScratchBytes scratch = scratchBytes(block.tilings, threads);
    block.work.sharedBytes = buffers + scratch.apart;
    block.ahead = scratch.ahead > 0 && hasRoomForPrefetch(target, block.work, buffers + scratch.ahead, target.cores);
    if (block.ahead)
      block.work.sharedBytes = buffers + scratch.ahead;
    if (block.work.sharedBytes <= target.blockBytes) {
      block.work.movedBytes = l2TrafficBytes(block.tilings);
      return block;
    }
    refuse("a block's operands and buffers take " + std::to_string(block.work.sharedBytes) + " bytes; the target has " +
           std::to_string(target.blockBytes));
    return std::nullopt;
  }

  /// In which so many blocks, `together` of them on an SM, compute all tiles.
  double secondsOf(const Candidate &block, double blocks, double together) const {
    double tiles = static_cast<double>(block.work.blocks), seconds = kStartSeconds, stream = 0;
    for (auto [product, tiling] : llvm::zip(products, block.tilings)) {
      ProductWork work = workOf(product);
      work.begun = block.ahead && beginsAhead(product);
      seconds += productSeconds(work, tiling, {blocks, together, block.work.threads}, target);
      stream += streamed(product, tiling, tiles, tiles);
    }
    // Where units share the terms, those that have the sums in the end go on alone.
    seconds += together * besideSeconds(together * static_cast<double>(block.tilings.back().accumulatorThreads));
    seconds *= std::ceil(tiles / blocks);
    return std::max(seconds, stream) + kBeside * std::min(seconds, stream);
  }

  /// With all numbers of threads that may compute it. Larger tiles have more sums, and take more shared memory.
  VisitedTile considerTile() {
    VisitedTile tile{false, std::numeric_limits<double>::infinity()};
    for (int64_t threads : kThreads)
      for (int64_t kSlices = 1; kSlices <= mostKSlices(); kSlices *= 2) {
        size_t before = found.size();
        if (threads <= kMostThreads || handsOver) // otherwise a tile of its own can be smaller instead
          consider(threads, kSlices);
        for (const BlockCandidate &block : ArrayRef(found).drop_front(before))
          tile = {true, std::min(tile.seconds, block.latency.seconds)};
      }
    return tile;
  }

  void consider(int64_t threads, int64_t kSlices) {
    std::optional<Candidate> block = candidate(threads, kSlices);
    if (!block)
      return;
    int64_t resident = residentBlocks(target.gpu, threads, block->work.sharedBytes, block->work.registers);
    if (resident == 0)
      return;
    double blocks = static_cast<double>(block->work.blocks), slots = static_cast<double>(resident * target.cores);
    double together = std::min<double>(resident, std::ceil(blocks / static_cast<double>(target.cores)));
    BlockCandidate &considered = found.emplace_back();
    considered.composition = Composition::sums;
    considered.threads = threads;
    considered.kSlices = kSlices;
    considered.tiles = space.tiles;
    considered.block = space.block;
    considered.work = block->work;
    considered.latency.residentBlocks = resident;
    considered.latency.waves = std::ceil(blocks / slots);
    considered.latency.seconds = secondsOf(*block, std::min(blocks, slots), together);
  }

  /// Past L1, in all blocks, in whole sectors.
  double l2TrafficBytes(ArrayRef<GemmTiling> tilings) const {
    bool onTensorCores = products.back().kernel.unit == StepUnit::warp;
    double bytes = l2TrafficBesideOperands(graph, space, onTensorCores);
    for (auto [product, tiling] : llvm::zip(products, tilings))
      for (unsigned operand : {0, 1})
        bytes += l2TrafficOfOperand(graph, space, *product.root, operand, tiling);
    return bytes;
  }

  /// Of the operands, past L1, in all blocks.
  double bytesOfBlocks() const {
    double bytes = 0;
    for (const Product &product : products)
      bytes += static_cast<double>(space.numTiles()) * bytesOfBlock(product);
    return bytes;
  }

  /// The quickest, an earlier one where a later one is not clearly quicker; of those that take as long the one that
  /// reads least. Blocks of the usual size come first, with whole dims, small tiles.
  size_t pick() const {
    size_t best = 0;
    for (size_t i = 1; i < found.size(); ++i) {
      double seconds = found[i].latency.seconds, quickest = found[best].latency.seconds;
      bool readsLess = found[i].work.movedBytes < found[best].work.movedBytes;
      if (seconds <= kWorthwhile * quickest || (seconds <= quickest && readsLess))
        best = i;
    }
    return best;
  }

  std::vector<BlockCandidate> ranked() {
    if (found.empty())
      return {};
    auto size = [&](const BlockCandidate &block, int64_t place) { return place < 0 ? 0 : block.tiles[place]; };
    auto order = [&](const BlockCandidate &block) {
      const Product &first = products.front();
      // Of warpgroups no more than their registers ask for: fewer copy more each, and wait for fewer.
      int64_t sums = std::max<int64_t>(1, size(block, first.row)) * std::max<int64_t>(1, size(block, first.lane));
      bool isSplit =
          isOfWarpgroup(*block.block) && block.threads != std::max(threadsOfStep(first.kernel), sums / kMostAccumulators);
      return std::tuple(isOfWarpgroup(*block.block), -size(block, walked), isSplit,
                        llvm::find(kThreads, block.threads) - std::begin(kThreads), size(block, first.row),
                        size(block, first.lane), block.kSlices);
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
  llvm::function_ref<int64_t()> footprint;
  std::vector<Product> products;
  bool handsOver = false;    ///< a contraction or a reduction reads what another nest leaves in shared memory
  bool reduces = false;      ///< it is a reduction that does
  int64_t combinedBytes = 4; ///< of what rows of sums are combined to; narrower results are rounded behind it
  std::vector<BlockCandidate> found;
  std::string whyNone;
};
} // namespace

std::vector<BlockCandidate> tilewright::contractionBlocks(const TensorGraph &graph, const Target &target,
                                                          IterationSpace &space, int64_t walked,
                                                          llvm::function_ref<int64_t()> footprint, std::string &why) {
  return BlockChooser(graph, target, space, walked, footprint).search(why);
}

std::string tilewright::chooseContractionBlock(const TensorGraph &graph, const Target &target, IterationSpace &space,
                                               int64_t walked, llvm::function_ref<int64_t()> footprint) {
  std::string why;
  std::vector<BlockCandidate> blocks = contractionBlocks(graph, target, space, walked, footprint, why);
  if (why.empty())
    blocks.front().applyTo(space);
  return why;
}

std::optional<BlockWork> tilewright::contractionBlockWork(const TensorGraph &graph, const Target &target,
                                                          IterationSpace space, int64_t threads) {
  int64_t walked = walkedDim(space.extents, space.tiles, space.grid);
  return BlockChooser(graph, target, space, walked, [&] { return space.footprintBytes; }).workWith(threads);
}

double tilewright::contractionSeconds(const TensorGraph &graph, const Target &target, IterationSpace space, int64_t threads,
                                      double blocks, double together) {
  int64_t walked = walkedDim(space.extents, space.tiles, space.grid);
  return BlockChooser(graph, target, space, walked, [&] { return space.footprintBytes; })
      .secondsWith(threads, blocks, together);
}

SharedTiles tilewright::sharedTiles(const TensorGraph &graph, const Target &target, IterationSpace space, int64_t threads) {
  int64_t walked = walkedDim(space.extents, space.tiles, space.grid);
  return BlockChooser(graph, target, space, walked, [&] { return space.footprintBytes; }).sharedWith(threads);
}

double tilewright::sharedSeconds(const TensorGraph &graph, const Target &target, IterationSpace space, int64_t threads,
                                 double blocks, double together) {
  int64_t walked = walkedDim(space.extents, space.tiles, space.grid);
  return BlockChooser(graph, target, space, walked, [&] { return space.footprintBytes; })
      .sharedSecondsWith(threads, blocks, together);
}
