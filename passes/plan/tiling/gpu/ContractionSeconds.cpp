// Predicts the time of blocks with contractions, if they compute one tile after another and if workgroups share tiles.
#include "passes/plan/space/WalkedDim.h"
#include "passes/plan/space/Work.h"
#include "passes/plan/tiling/gpu/BlockContractions.h"
#include "passes/target/AllowedProducts.h"

using namespace mlir;
using namespace tilewright;

constexpr double kStartSeconds = 1e-6; ///< seconds to start a block and to store its accumulators
constexpr double kBeside = 0.15;       ///< fraction of the shorter of DRAM and SM time that does not overlap
constexpr double kRunBytes = 64;       ///< bytes of one DRAM access
constexpr double kSpecialLanes = 16;   ///< special functions of an SM per cycle

bool BlockContractions::isOneLoop() const {
  const BlockContraction &product = products.front();
  return products.size() == 1 && !handsOver && walked < 0 && !target.has(kStrictFeature) && timesOf(product) == 1 &&
         isOneTerm(product);
}

ProductWork BlockContractions::workOf(const BlockContraction &product) const {
  ProductWork work{product.kernel, timesOf(product), product.terms, bytesOfBlock(product)};
  work.rowBytes = product.rowBytes;
  work.laneBytes = product.laneBytes;
  work.rowCopies = product.rowCopies;
  work.laneCopies = product.laneCopies;
  work.combinesRows = reduces;
  return work;
}

double BlockContractions::streamed(const BlockContraction &product, const GemmTiling &tiling, double tiles,
                                   double blocks) const {
  if (!streams(product))
    return 0;
  double lanes = static_cast<double>(tileOf(product.lane) * product.laneBytes);
  double run = product.rhsAlongK ? kRunBytes : std::min(lanes, kRunBytes);
  double bytes = tiles * timesOf(product) * product.terms * lanes * (kRunBytes / run);
  return streamSeconds(bytes, tiling, blocks, target);
}

double BlockContractions::besideSeconds(double threads) const {
  GroupWork work = tilewright::workOf(graph, space);
  double tiles = static_cast<double>(space.numTiles()), clock = target.gpu.clockHz;
  double light = work.elementwise / issuedLanes(threads);
  double cycles = (work.blockBytes / kBankBytes + work.special / kSpecialLanes + light) / tiles;
  return (cycles + fillCycles(threads)) / clock;
}

double BlockContractions::fillCycles(double threads) const {
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

double BlockContractions::secondsOf(const Candidate &block, double blocks, double together) const {
  double tiles = static_cast<double>(block.work.blocks), seconds = kStartSeconds, stream = 0;
  for (auto [product, tiling] : llvm::zip(products, block.tilings)) {
    ProductWork work = workOf(product);
    work.begun = block.ahead && beginsAhead(product);
    seconds += productSeconds(work, tiling, {blocks, together, block.work.threads}, target);
    stream += streamed(product, tiling, tiles, tiles);
  }
  // Where K is sliced, only the units that hold the final accumulators run the epilogue.
  seconds += together * besideSeconds(together * static_cast<double>(block.tilings.back().accumulatorThreads));
  seconds *= std::ceil(tiles / blocks);
  return std::max(seconds, stream) + kBeside * std::min(seconds, stream);
}

std::optional<BlockWork> BlockContractions::workWith(int64_t threads) {
  std::optional<Candidate> block = chosen(threads);
  return block ? std::optional(block->work) : std::nullopt;
}

double BlockContractions::secondsWith(int64_t threads, double blocks, double together) {
  std::optional<Candidate> block = chosen(threads);
  return block ? secondsOf(*block, blocks, together) : std::numeric_limits<double>::infinity();
}

SharedTiles BlockContractions::sharedWith(int64_t threads) {
  std::optional<Candidate> block = chosen(threads);
  if (!block || !isOneLoop())
    return {};
  const GemmTiling &tiling = block->tilings.front();
  return {stepsOf(products.front(), tiling), tiling.sums * tiling.accumulatorThreads * tiling.accumulatorBytes};
}

double BlockContractions::sharedSecondsWith(int64_t threads, double blocks, double together) {
  std::optional<Candidate> block = chosen(threads);
  if (!block || !isOneLoop())
    return std::numeric_limits<double>::infinity();
  const GemmTiling &tiling = block->tilings.front();
  double tiles = static_cast<double>(block->work.blocks), steps = stepsOf(products.front(), tiling);
  double own = std::ceil(tiles * steps / blocks), begun = std::ceil(own / steps) + 1;
  BlockContraction share = products.front();
  share.terms = own * static_cast<double>(tiling.step);
  double row = static_cast<double>(tiling.sums * tiling.accumulatorThreads * tiling.accumulatorBytes);
  double found = target.gpu.l2Cycles / target.gpu.clockHz;
  double passed = found + row * static_cast<double>(target.cores) / l2Bandwidth(target);
  double exchange = (1 + std::ceil(steps / own)) * passed;
  double seconds = begun * (kStartSeconds + found) + together * exchange +
                   productSeconds(workOf(share), tiling, {blocks, together, block->work.threads}, target);
  return std::max(seconds, streamed(products.front(), tiling, tiles, blocks));
}

std::optional<BlockWork> tilewright::contractionBlockWork(const TensorGraph &graph, const Target &target,
                                                          IterationSpace space, int64_t threads) {
  int64_t walked = walkedDim(space.extents, space.tiles, space.grid);
  return BlockContractions(graph, target, space, walked, [&] { return space.footprintBytes; }).workWith(threads);
}

double tilewright::contractionSeconds(const TensorGraph &graph, const Target &target, IterationSpace space,
                                      int64_t threads, double blocks, double together) {
  int64_t walked = walkedDim(space.extents, space.tiles, space.grid);
  return BlockContractions(graph, target, space, walked, [&] { return space.footprintBytes; })
      .secondsWith(threads, blocks, together);
}

SharedTiles tilewright::sharedTiles(const TensorGraph &graph, const Target &target, IterationSpace space,
                                    int64_t threads) {
  int64_t walked = walkedDim(space.extents, space.tiles, space.grid);
  return BlockContractions(graph, target, space, walked, [&] { return space.footprintBytes; }).sharedWith(threads);
}

double tilewright::sharedSeconds(const TensorGraph &graph, const Target &target, IterationSpace space, int64_t threads,
                                 double blocks, double together) {
  int64_t walked = walkedDim(space.extents, space.tiles, space.grid);
  return BlockContractions(graph, target, space, walked, [&] { return space.footprintBytes; })
      .sharedSecondsWith(threads, blocks, together);
}
