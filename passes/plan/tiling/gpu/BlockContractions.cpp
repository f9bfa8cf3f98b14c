#include "passes/plan/tiling/gpu/BlockContractions.h"

#include "mlir/IR/TypeUtilities.h"
#include "passes/cost/ChooseGemm.h"
#include "passes/cost/GridPartition.h"
#include "passes/graph/Rounding.h"
#include "passes/layout/OperandAccess.h"
#include "passes/plan/space/ContractionKernel.h"
#include "passes/plan/space/LiveBuffers.h"
#include "passes/plan/tiling/gpu/CopyWidths.h"
#include "passes/plan/tiling/gpu/L2Traffic.h"

using namespace mlir;
using namespace tilewright;

static int64_t bytesOf(Value tensor) {
  return tile::elementBytes(cast<RankedTensorType>(tensor.getType()).getElementType());
}

/// Returns how a contraction reads an operand, if tiles have all of every dim.
static OperandAccess accessTo(const TensorExpr &expr, const RootAccess &access) {
  auto type = cast<RankedTensorType>(access.tensor.getType());
  return {access.map, type.getShape(), bytesOf(access.tensor), expr.domain, expr.domain, access.guard};
}

std::string BlockContractions::collect() {
  for (const GroupRoot &root : space.roots) {
    const TensorExpr &expr = graph.exprs()[root.expr];
    if (expr.kind != ExprKind::contraction) {
      if (expr.kind != ExprKind::reduction)
        continue;
      readsBuffers = reduces = true;
      for (Type result : expr.op->getResultTypes())
        combinedBytes = std::max(combinedBytes, tile::elementBytes(cast<RankedTensorType>(result).getElementType()));
      continue;
    }
    readsBuffers |= llvm::any_of(root.accesses, [](const RootAccess &access) { return access.producer >= 0; });
    std::optional<ContractionRoles> roles = rolesOf(graph, root);
    std::optional<MicroKernel> kernel = microKernelFor(graph, root, target, space.numerics);
    if (!roles || !kernel)
      return "no micro kernel of the target computes the contraction";
    BlockContraction contraction;
    contraction.root = &root;
    contraction.lhsInput = roles->lhsInput;
    contraction.kernel = *kernel;
    contraction.warpgroupKernel = warpgroupKernelFor(graph, root, target, space.numerics);
    contraction.m = roles->m < 0 ? -1 : root.dims[roles->m];
    contraction.n = root.dims[roles->n];
    for (int64_t dim : expr.reductions) {
      contraction.k *= static_cast<double>(expr.domain[dim]);
      contraction.longestK = std::max(contraction.longestK, expr.domain[dim]);
    }
    contraction.lhsBytes = bytesOf(root.accesses[roles->lhsInput].tensor);
    contraction.rhsBytes = bytesOf(root.accesses[roles->rhsInput].tensor);
    contraction.lhsResident = root.accesses[roles->lhsInput].producer >= 0;
    contraction.rhsResident = root.accesses[roles->rhsInput].producer >= 0;
    OperandAccess lhs = accessTo(expr, root.accesses[roles->lhsInput]), rhs = accessTo(expr, root.accesses[roles->rhsInput]);
    int64_t stepped = steppedDim({lhs, rhs}, expr.reductions);
    contraction.lhsAlongK = lhs.liesByK(roles->m, stepped);
    contraction.rhsAlongK = rhs.liesByK(roles->n, stepped);
    contraction.lhsShifted = beginsInsideWords(graph, root, roles->lhsInput);
    contraction.rhsShifted = beginsInsideWords(graph, root, roles->rhsInput);
    contraction.lhsCopies = copyInstructions(root, roles->lhsInput, contraction.lhsShifted);
    contraction.rhsCopies = copyInstructions(root, roles->rhsInput, contraction.rhsShifted);
    for (auto [dim, place] : llvm::enumerate(root.dims))
      contraction.lhsWalked |= place >= 0 && place == walked && root.accesses[roles->lhsInput].map.isFunctionOfDim(dim);
    contraction.alongK = lieAlongK(expr, root.accesses[roles->lhsInput].map, root.accesses[roles->rhsInput].map);
    Type stored = getElementTypeOrSelf(expr.op->getResult(0).getType());
    contraction.inOrder = space.numerics == NumericsMode::strict && isNarrowFloat(stored);
    contractions.push_back(contraction);
  }
  return "";
}

double BlockContractions::copyInstructions(const GroupRoot &root, unsigned operand, bool shifted) const {
  const RootAccess &access = root.accesses[operand];
  if (access.producer >= 0)
    return 0;
  int64_t together = shifted ? pieceBytes(graph, root, operand) : copyBytes(graph, root, operand);
  const GpuCosts &costs = target.costs.gpu;
  return (shifted ? costs.shiftedCopyInstructions : costs.copyInstructions) *
         static_cast<double>(bytesOf(access.tensor)) / static_cast<double>(together);
}

bool BlockContractions::haveRowsForWarpgroups() const {
  return llvm::all_of(contractions, [&](const BlockContraction &contraction) {
    return contraction.m >= 0 && 2 * space.extents[contraction.m] > kWarpgroupBlock.rows;
  });
}

bool BlockContractions::takeWarpgroups() {
  bool can = llvm::all_of(contractions, [](const BlockContraction &contraction) {
    return contraction.warpgroupKernel && !contraction.rhsResident &&
           (!contraction.lhsResident || takesLhsFromBuffers(*contraction.warpgroupKernel)) &&
           (contraction.alongK || !readsAlongK(*contraction.warpgroupKernel));
  });
  for (BlockContraction &contraction : contractions)
    if (can)
      contraction.kernel = *contraction.warpgroupKernel;
  return can;
}

double BlockContractions::timesOf(const BlockContraction &contraction) const {
  const TensorExpr &expr = graph.exprs()[contraction.root->expr];
  double times = 1;
  for (auto [dim, place] : llvm::enumerate(contraction.root->dims)) {
    if (place < 0 || llvm::is_contained(expr.reductions, static_cast<int64_t>(dim)))
      continue;
    if (place != contraction.m && place != contraction.n)
      times *= static_cast<double>(space.tiles[place]);
    if (place == walked)
      times *= static_cast<double>(space.blocksPerTile());
  }
  return times;
}

bool BlockContractions::canPrefetch(const BlockContraction &contraction) const {
  bool isFirst = &contraction == &contractions.front();
  if ((isFirst && !isPrefetchedInBlockBefore()) || (contraction.lhsResident && contraction.rhsResident))
    return false;
  return timesOf(contraction) == timesOf(isFirst ? contractions.back() : *(&contraction - 1));
}

bool BlockContractions::keepsLhs(const BlockContraction &contraction) const {
  return walked >= 0 && space.blocksPerTile() > 1 && !contraction.lhsResident && !contraction.lhsWalked &&
         !roundsInSharedMemory(contraction.kernel) && hasOneK(contraction) &&
         timesOf(contraction) == static_cast<double>(space.blocksPerTile()) &&
         tileOf(contraction.m) * contraction.longestK * contraction.lhsBytes <= target.costs.gpu.residentBytes;
}

double BlockContractions::bytesOfBlock(const BlockContraction &contraction) const {
  double lhs = static_cast<double>(contraction.lhsResident ? 0 : tileOf(contraction.m) * contraction.lhsBytes);
  double rhs = static_cast<double>(contraction.rhsResident ? 0 : tileOf(contraction.n) * contraction.rhsBytes);
  if (keepsLhs(contraction))
    lhs /= space.blocksPerTile();
  return timesOf(contraction) * contraction.k * (lhs + rhs);
}

double BlockContractions::bytesOfBlocks() const {
  double bytes = 0;
  for (const BlockContraction &contraction : contractions)
    bytes += static_cast<double>(space.numTiles()) * bytesOfBlock(contraction);
  return bytes;
}

BlockContractions::ScratchBytes BlockContractions::scratchBytes(ArrayRef<GemmTiling> tilings, int64_t threads) const {
  auto bytesOf = [&](const GemmTiling &tiling) {
    return std::max(tiling.sharedBytes(), readsBuffers ? tiling.combiningBytes(threads, combinedBytes) : 0);
  };
  auto aligned = [&](const GemmTiling &tiling) -> int64_t { return llvm::alignTo(bytesOf(tiling), alignment()); };
  int64_t resident = 0, most = 0;
  for (const GemmTiling &tiling : tilings)
    if (tiling.residentSteps > 0)
      resident += aligned(tiling);
    else
      most = std::max(most, bytesOf(tiling));
  ScratchBytes bytes{resident + most, 0};
  for (auto [i, contraction] : llvm::enumerate(contractions)) {
    if (!canPrefetch(contraction))
      continue;
    const GemmTiling &own = tilings[i], &before = tilings[i == 0 ? tilings.size() - 1 : i - 1];
    int64_t both = (own.residentSteps > 0 ? 0 : bytesOf(own)) + (before.residentSteps > 0 ? 0 : aligned(before));
    bytes.prefetching = std::max({bytes.prefetching, bytes.sequential, resident + both});
  }
  return bytes;
}

BlockContractions::TileFacts &BlockContractions::tileFacts() const {
  if (facts.tiles != space.tiles)
    facts = {space.tiles, {}, {}};
  return facts;
}

std::optional<BlockContractions::Candidate> BlockContractions::candidate(int64_t threads, int64_t kSlices) {
  if (threads > target.gpu.threadsPerBlock)
    return std::nullopt;
  Candidate block;
  block.work.blocks = space.numTiles();
  block.work.threads = threads;
  int64_t grown = 0;
  for (const BlockContraction &contraction : contractions) {
    GemmTile tile{tileOf(contraction.m), tileOf(contraction.n),  contraction.longestK,
                  contraction.lhsBytes,  contraction.rhsBytes,   contraction.lhsAlongK,
                  contraction.rhsAlongK, contraction.lhsShifted, contraction.rhsShifted};
    OrDeclined<GemmTiling> tiling =
        chooseGemmTiling(tile, threads, contraction.kernel, target.costs.gpu, {kSlices, isAlone()});
    if (!tiling) {
      if (kSlices == 1) // with several slices, the reason is already recorded for one slice
        refuse(tiling.why().reason);
      return std::nullopt;
    }
    if ((tiling->loadsOperands || contractions.size() > 1) &&
        tiling->accumulators > target.costs.gpu.threadAccumulators)
      return std::nullopt;
    tiling->overlaps &= !contraction.lhsResident;
    if (keepsLhs(contraction) && tiling->whyNotResident(contraction.longestK, target.costs.gpu).empty())
      tiling->keepLhsResident(contraction.longestK);
    block.work.registers = std::max(block.work.registers, tiling->registers(target.costs.gpu));
    if (growsInRegisters(graph, space, *contraction.root))
      grown += tiling->accumulatorRegisters();
    block.tilings.push_back(*tiling);
  }
  block.work.registers += grown > 0 ? grown + target.costs.gpu.loopRegisters : 0;
  block.work.registers = std::min(block.work.registers, target.gpu.registersPerThread);
  std::optional<int64_t> &bufferBytes = tileFacts().bufferBytes;
  if (!bufferBytes)
    bufferBytes = footprint();
  int64_t buffers = llvm::alignTo(*bufferBytes, isOfWarpgroup(space.block) ? kWarpgroupAlignment : 1);
  ScratchBytes scratch = scratchBytes(block.tilings, threads);
  block.work.sharedBytes = buffers + scratch.sequential;
  block.prefetches = scratch.prefetching > 0 &&
                     hasRoomForPrefetch(target, resourcesOf(block.work), buffers + scratch.prefetching, target.cores);
  if (block.prefetches)
    block.work.sharedBytes = buffers + scratch.prefetching;
  if (block.work.sharedBytes <= target.blockBytes) {
    block.work.movedBytes = l2TrafficBytes(block.tilings);
    return block;
  }
  refuse("a block's operands and buffers take " + std::to_string(block.work.sharedBytes) + " bytes; the target has " +
         std::to_string(target.blockBytes));
  return std::nullopt;
}

std::optional<BlockContractions::Candidate> BlockContractions::presentBlock(int64_t threads) {
  if (!collect().empty() || (isOfWarpgroup(space.block) && !takeWarpgroups()))
    return std::nullopt;
  return candidate(threads, space.kSlices);
}

double BlockContractions::l2TrafficBytes(ArrayRef<GemmTiling> tilings) const {
  bool onTensorCores = contractions.back().kernel.unit == StepUnit::warp;
  double bytes = l2TrafficBesideOperands(graph, space, onTensorCores);
  for (auto [contraction, tiling] : llvm::zip(contractions, tilings))
    for (unsigned operand : {0, 1})
      bytes += l2TrafficOfOperand(graph, space, *contraction.root, operand, tiling);
  return bytes;
}
