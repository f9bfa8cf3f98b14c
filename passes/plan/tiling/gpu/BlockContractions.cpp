#include "passes/plan/tiling/gpu/BlockContractions.h"

#include "mlir/IR/TypeUtilities.h"
#include "passes/cost/GridPartition.h"
#include "passes/graph/Rounding.h"
#include "passes/plan/space/ContractionKernel.h"
#include "passes/plan/space/LiveBuffers.h"
#include "passes/plan/tiling/gpu/CopyWidths.h"
#include "passes/plan/tiling/gpu/L2Traffic.h"
#include "passes/target/AllowedProducts.h"

using namespace mlir;
using namespace tilewright;

static int64_t bytesOf(Value tensor) {
  return tile::elementBytes(cast<RankedTensorType>(tensor.getType()).getElementType());
}

static bool liesAlong(AffineMap map, int64_t dim) {
  return map.getNumResults() > 0 && unitStrideDim(map.getResult(map.getNumResults() - 1)) == dim;
}

std::string BlockContractions::collect() {
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
    BlockContraction product;
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

double BlockContractions::copyInstructions(const GroupRoot &root, unsigned operand, bool shifted) const {
  const RootAccess &access = root.accesses[operand];
  if (access.producer >= 0)
    return 0;
  int64_t together = shifted ? pieceBytes(graph, root, operand) : copyBytes(graph, root, operand);
  return (shifted ? kShiftedCopyInstructions : kCopyInstructions) * static_cast<double>(bytesOf(access.tensor)) /
         static_cast<double>(together);
}

bool BlockContractions::haveRowsForWarpgroups() const {
  return llvm::all_of(products, [&](const BlockContraction &product) {
    return product.row >= 0 && 2 * space.extents[product.row] > kWarpgroupBlock.rows;
  });
}

bool BlockContractions::takeWarpgroups() {
  bool can = llvm::all_of(products, [](const BlockContraction &product) {
    return product.groupKernel && !product.lanesResident &&
           (!product.rowsResident || takesRowsFromBuffers(*product.groupKernel)) &&
           (product.alongK || !readsAlongK(*product.groupKernel));
  });
  for (BlockContraction &product : products)
    if (can)
      product.kernel = *product.groupKernel;
  return can;
}

double BlockContractions::timesOf(const BlockContraction &product) const {
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

bool BlockContractions::beginsAhead(const BlockContraction &product) const {
  bool isFirst = &product == &products.front();
  if ((isFirst && !isPrefetchedInBlockBefore()) || (product.rowsResident && product.lanesResident))
    return false;
  return timesOf(product) == timesOf(isFirst ? products.back() : *(&product - 1));
}

bool BlockContractions::keepsRows(const BlockContraction &product) const {
  return walked >= 0 && space.blocksPerTile() > 1 && !product.rowsResident && !product.rowsWalked &&
         !roundsInSharedMemory(product.kernel) && isOneTerm(product) &&
         timesOf(product) == static_cast<double>(space.blocksPerTile()) &&
         tileOf(product.row) * product.longest * product.rowBytes <= GemmTiling::kMostKeptBytes;
}

double BlockContractions::bytesOfBlock(const BlockContraction &product) const {
  double rows = static_cast<double>(product.rowsResident ? 0 : tileOf(product.row) * product.rowBytes);
  double lanes = static_cast<double>(product.lanesResident ? 0 : tileOf(product.lane) * product.laneBytes);
  if (keepsRows(product))
    rows /= space.blocksPerTile();
  return timesOf(product) * product.terms * (rows + lanes);
}

double BlockContractions::bytesOfBlocks() const {
  double bytes = 0;
  for (const BlockContraction &product : products)
    bytes += static_cast<double>(space.numTiles()) * bytesOfBlock(product);
  return bytes;
}

BlockContractions::ScratchBytes BlockContractions::scratchBytes(ArrayRef<GemmTiling> tilings, int64_t threads) const {
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

std::optional<BlockContractions::Candidate> BlockContractions::candidate(int64_t threads, int64_t kSlices) {
  if (threads > target.gpu.threadsPerBlock)
    return std::nullopt;
  Candidate block;
  block.work.blocks = space.numTiles();
  block.work.threads = threads;
  int64_t grown = 0;
  for (const BlockContraction &product : products) {
    GemmTile tile{tileOf(product.row), tileOf(product.lane), product.longest, product.rowBytes,
                  product.laneBytes,   product.lhsAlongK,    isAlone(),       product.rhsAlongK,
                  product.rowsShifted, product.lanesShifted};
    std::string why;
    std::optional<GemmTiling> tiling = chooseGemmTiling(tile, threads, product.kernel, &why, kSlices);
    if (!tiling) {
      if (kSlices == 1) // with several slices, the reason is already recorded for one slice
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

std::optional<BlockContractions::Candidate> BlockContractions::chosen(int64_t threads) {
  if (!collect().empty() || (isOfWarpgroup(space.block) && !takeWarpgroups()))
    return std::nullopt;
  return candidate(threads, space.kSlices);
}

double BlockContractions::l2TrafficBytes(ArrayRef<GemmTiling> tilings) const {
  bool onTensorCores = products.back().kernel.unit == StepUnit::warp;
  double bytes = l2TrafficBesideOperands(graph, space, onTensorCores);
  for (auto [product, tiling] : llvm::zip(products, tilings))
    for (unsigned operand : {0, 1})
      bytes += l2TrafficOfOperand(graph, space, *product.root, operand, tiling);
  return bytes;
}
