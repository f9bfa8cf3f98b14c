// Predicts the time of blocks with contractions, if they compute one tile after another and if workgroups share tiles.
#include "passes/plan/space/SharedRows.h"
#include "passes/plan/space/WalkedDim.h"
#include "passes/plan/space/Work.h"
#include "passes/plan/tiling/gpu/BlockContractions.h"

using namespace mlir;
using namespace tilewright;

bool BlockContractions::isOneLoop() const {
  const BlockContraction &contraction = contractions.front();
  return contractions.size() == 1 && !readsBuffers && walked < 0 && space.numerics != NumericsMode::strict &&
         timesOf(contraction) == 1 && hasOneK(contraction);
}

ProductWork BlockContractions::workOf(const BlockContraction &contraction) const {
  ProductWork work{contraction.kernel, timesOf(contraction), contraction.k, bytesOfBlock(contraction)};
  work.lhsBytes = contraction.lhsBytes;
  work.rhsBytes = contraction.rhsBytes;
  work.lhsCopies = contraction.lhsCopies;
  work.rhsCopies = contraction.rhsCopies;
  work.combinesRows = reduces;
  return work;
}

double BlockContractions::rhsStreamSeconds(const BlockContraction &contraction, const GemmTiling &tiling, double tiles,
                                           double blocks) const {
  if (!streams(contraction))
    return 0;
  double rhs = static_cast<double>(tileOf(contraction.n) * contraction.rhsBytes);
  double access = target.costs.gpu.dramAccessBytes, run = contraction.rhsAlongK ? access : std::min(rhs, access);
  double bytes = tiles * timesOf(contraction) * contraction.k * rhs * (access / run);
  return streamSeconds(bytes, tiling, blocks, target);
}

double BlockContractions::otherSeconds(double threads) const {
  std::optional<GroupWork> &known = tileFacts().work;
  if (!known)
    known = tilewright::workOf(graph, space, target);
  const GroupWork &work = *known;
  const GpuCosts &costs = target.costs.gpu;
  double tiles = static_cast<double>(space.numTiles()), clock = target.gpu.clockHz;
  double light = work.elementwise / issuedLanes(threads, target);
  double cycles = (work.blockBytes / costs.bankBytes + work.special / costs.specialLanes + light) / tiles;
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

double BlockContractions::exchangeSeconds() const {
  if (!reduces)
    return 0;
  double latency = 2 * target.gpu.l2Cycles / target.gpu.clockHz;
  return static_cast<double>(rowExchanges(graph, space)) * (target.gpu.gridBarrierSeconds + latency);
}

double BlockContractions::secondsOf(const Candidate &block, double blocks, double together) const {
  double tiles = static_cast<double>(block.work.blocks), seconds = target.costs.gpu.blockSeconds, stream = 0;
  for (auto [contraction, tiling] : llvm::zip(contractions, block.tilings)) {
    ProductWork work = workOf(contraction);
    work.prefetched = block.prefetches && canPrefetch(contraction);
    seconds += productSeconds(work, tiling, {blocks, together, block.work.threads}, target);
    stream += rhsStreamSeconds(contraction, tiling, tiles, tiles);
  }
  // If K is sliced, only the units that hold the final accumulators run the epilogue.
  seconds += together * otherSeconds(together * static_cast<double>(block.tilings.back().accumulatorThreads));
  seconds = seconds * std::ceil(tiles / blocks) + exchangeSeconds();
  return std::max(seconds, stream) + target.costs.gpu.notOverlapped * std::min(seconds, stream);
}

std::optional<BlockWork> BlockContractions::workWith(int64_t threads) {
  std::optional<Candidate> block = presentBlock(threads);
  return block ? std::optional(block->work) : std::nullopt;
}

double BlockContractions::secondsWith(int64_t threads, double blocks, double together) {
  std::optional<Candidate> block = presentBlock(threads);
  return block ? secondsOf(*block, blocks, together) : std::numeric_limits<double>::infinity();
}

SharedTiles BlockContractions::sharedWith(int64_t threads) {
  std::optional<Candidate> block = presentBlock(threads);
  if (!block || !isOneLoop())
    return {};
  const GemmTiling &tiling = block->tilings.front();
  return {stepsOf(contractions.front(), tiling),
          tiling.accumulators * tiling.accumulatorThreads * tiling.accumulatorBytes};
}

double BlockContractions::sharedSecondsWith(int64_t threads, double blocks, double together) {
  std::optional<Candidate> block = presentBlock(threads);
  if (!block || !isOneLoop())
    return std::numeric_limits<double>::infinity();
  const GemmTiling &tiling = block->tilings.front();
  double tiles = static_cast<double>(block->work.blocks), steps = stepsOf(contractions.front(), tiling);
  double ownSteps = std::ceil(tiles * steps / blocks), startedTiles = std::ceil(ownSteps / steps) + 1;
  BlockContraction share = contractions.front();
  share.k = ownSteps * static_cast<double>(tiling.step);
  double partialBytes = static_cast<double>(tiling.accumulators * tiling.accumulatorThreads * tiling.accumulatorBytes);
  double latency = target.gpu.l2Cycles / target.gpu.clockHz;
  double handover = latency + partialBytes * static_cast<double>(target.cores) / l2Bandwidth(target);
  double exchange = (1 + std::ceil(steps / ownSteps)) * handover;
  double seconds = startedTiles * (target.costs.gpu.blockSeconds + latency) + together * exchange +
                   productSeconds(workOf(share), tiling, {blocks, together, block->work.threads}, target);
  return std::max(seconds, rhsStreamSeconds(contractions.front(), tiling, tiles, blocks));
}

std::optional<BlockWork> tilewright::contractionBlockWork(const TensorGraph &graph, const Target &target,
                                                          const IterationSpace &space, int64_t threads) {
  int64_t walked = walkedDim(space.extents, space.tiles, space.grid);
  return BlockContractions(graph, target, space, walked, [&] { return space.footprintBytes; }).workWith(threads);
}

double tilewright::contractionSeconds(const TensorGraph &graph, const Target &target, const IterationSpace &space,
                                      int64_t threads, double blocks, double together) {
  int64_t walked = walkedDim(space.extents, space.tiles, space.grid);
  return BlockContractions(graph, target, space, walked, [&] { return space.footprintBytes; })
      .secondsWith(threads, blocks, together);
}

SharedTiles tilewright::sharedTiles(const TensorGraph &graph, const Target &target, const IterationSpace &space,
                                    int64_t threads) {
  int64_t walked = walkedDim(space.extents, space.tiles, space.grid);
  return BlockContractions(graph, target, space, walked, [&] { return space.footprintBytes; }).sharedWith(threads);
}

double tilewright::sharedSeconds(const TensorGraph &graph, const Target &target, const IterationSpace &space,
                                 int64_t threads, double blocks, double together) {
  int64_t walked = walkedDim(space.extents, space.tiles, space.grid);
  return BlockContractions(graph, target, space, walked, [&] { return space.footprintBytes; })
      .sharedSecondsWith(threads, blocks, together);
}
