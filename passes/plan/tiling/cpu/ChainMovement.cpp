// A cache level keeps the data of the largest blocks that fit in it. The largest blocks are the tiles of the grid, in
// which the operators of a chain take turns. If those do not fit, each operator is counted by itself: its block is one
// iteration of the outermost of its own loops whose block fits.
#include "passes/plan/tiling/cpu/ChainMovement.h"

#include "passes/layout/WindowSteps.h"
#include "passes/plan/space/ContractionKernel.h"
#include "passes/support/AffineAlgebra.h"
#include "passes/target/KBlocking.h"
#include "passes/target/LaneBytes.h"

#include "mlir/IR/Threading.h"
#include <map>
#include <numeric>

using namespace mlir;
using namespace tilewright;

namespace {
constexpr int64_t kUnitOfK = 4; ///< unit of K that every micro kernel divides into whole steps

int64_t sizeIn(const IterationSpace &space, const GroupRoot &root, const TensorExpr &expr, int64_t dim) {
  int64_t place = root.dims[dim];
  return place < 0 ? expr.domain[dim] : space.tiles[place];
}

int64_t bytesOfElement(Value tensor) {
  return tile::elementBytes(cast<RankedTensorType>(tensor.getType()).getElementType());
}

/// Returns true if the operand is packed, so that a register block of `lanes` reads its steps contiguously.
bool liesInPanels(const RootAccess &access, int64_t lanes) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(access.tensor.getType()).getShape();
  bool isCut = llvm::any_of(access.map.getResults(), [](AffineExpr index) {
    auto binary = dyn_cast<AffineBinaryOpExpr>(index);
    return binary && index.getKind() == AffineExprKind::Mod;
  });
  return isCut || access.producer >= 0 || shape.back() <= lanes;
}

int64_t mIn(const IterationSpace &space, const GroupRoot &root, const TensorExpr &expr, const ContractionRoles &roles) {
  return roles.m < 0 ? 1 : sizeIn(space, root, expr, roles.m);
}

int64_t lanesOfBlock(const IterationSpace &space, const Target &target) {
  return space.block.vectors * target.vectorBytes / kLaneBytes;
}

bool isBeyondOuterCache(Value tensor, double elements, const Target &target) {
  return elements * bytesOfElement(tensor) > target.level(tile::Space::block).capacityBytes;
}

/// Returns true if rhs is an unpacked matrix that a single block of rows reads once.
bool readsRowsOnce(const TensorGraph &graph, const GroupRoot &root, const ContractionRoles &roles,
                   const IterationSpace &space, const Target &target) {
  const TensorExpr &expr = graph.exprs()[root.expr];
  std::optional<MicroKernel> kernel = microKernelFor(graph, root, target, space.numerics);
  return kernel && kernel->unit == StepUnit::vector && kernel->depth == 1 &&
         liesAlongLanes(graph, root, roles, target) && mIn(space, root, expr, roles) <= space.block.rows &&
         !liesInPanels(root.accesses[roles.rhsInput], lanesOfBlock(space, target));
}

/// Returns true if the tile's share of such a matrix comes from memory.
bool streamsK(const TensorGraph &graph, const GroupRoot &root, const ContractionRoles &roles,
              const IterationSpace &space, const Target &target) {
  const TensorExpr &expr = graph.exprs()[root.expr];
  int64_t k = sizeIn(space, root, expr, expr.reductions[0]), n = sizeIn(space, root, expr, roles.n);
  return readsRowsOnce(graph, root, roles, space, target) && k > target.costs.cpu.rowsInParallel &&
         n > lanesOfBlock(space, target) &&
         isBeyondOuterCache(root.accesses[roles.rhsInput].tensor, static_cast<double>(k) * n, target);
}
} // namespace

double tilewright::runsOfStreams(const TensorGraph &graph, const IterationSpace &space, const Target &target) {
  double runs = 0;
  for (const GroupRoot &root : space.roots) {
    const TensorExpr &expr = graph.exprs()[root.expr];
    std::optional<ContractionRoles> roles = rolesOf(graph, root);
    if (!roles || expr.reductions.size() != 1 || !readsRowsOnce(graph, root, *roles, space, target))
      continue;
    Value matrix = root.accesses[roles->rhsInput].tensor;
    if (!isBeyondOuterCache(matrix, cast<RankedTensorType>(matrix.getType()).getNumElements(), target))
      continue;
    bool streams = streamsK(graph, root, *roles, space, target);
    int64_t n = sizeIn(space, root, expr, roles->n);
    int64_t jumpsPerRow = streams ? 1 : llvm::divideCeil(n, lanesOfBlock(space, target));
    runs += static_cast<double>(sizeIn(space, root, expr, expr.reductions[0]) * jumpsPerRow * space.numTiles());
  }
  return runs;
}

/// Returns the pieces of contiguous elements that the first tile reads of a tensor. Others may read a line more.
static double piecesOf(const RootAccess &access, ArrayRef<int64_t> tile) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(access.tensor.getType()).getShape();
  SmallVector<int64_t> region = llvm::map_to_vector(access.map.getResults(), [&](AffineExpr index) {
    Interval range = boundExpr(index, domainRanges(tile));
    return range.high - range.low + 1;
  });
  int64_t piece = shape.size() - 1; // the dim along which a piece ends
  while (piece > 0 && region[piece] >= shape[piece])
    --piece;
  double pieces = 1;
  for (int64_t dim = 0; dim < piece; ++dim)
    pieces *= static_cast<double>(std::min(region[dim], shape[dim]));
  return pieces;
}

double tilewright::piecesOfWindows(const TensorGraph &graph, const IterationSpace &space, const Target &target) {
  double pieces = 0;
  for (const GroupRoot &root : space.roots) {
    const TensorExpr &expr = graph.exprs()[root.expr];
    std::optional<ContractionRoles> roles = rolesOf(graph, root);
    if (!roles || expr.reductions.size() != 1)
      continue;
    const RootAccess &image = root.accesses[roles->lhsInput];
    auto type = dyn_cast<RankedTensorType>(image.tensor.getType());
    if (image.producer >= 0 || !type || !type.hasStaticShape() || type.getRank() == 0 ||
        !hasWindows(image.map, expr.reductions[0]) ||
        !isBeyondOuterCache(image.tensor, type.getNumElements(), target))
      continue;
    SmallVector<int64_t> tile;
    for (size_t dim = 0; dim < expr.domain.size(); ++dim)
      tile.push_back(sizeIn(space, root, expr, dim));
    pieces += piecesOf(image, tile) * static_cast<double>(space.numTiles());
  }
  return pieces;
}

int64_t tilewright::kPerBlock(const TensorGraph &graph, const GroupRoot &root, const IterationSpace &space,
                              const Target &target) {
  const TensorExpr &expr = graph.exprs()[root.expr];
  std::optional<ContractionRoles> roles = rolesOf(graph, root);
  // Partial accumulators are stored in the result's type between blocks of K, which must not be narrow.
  if (!roles || expr.reductions.size() != 1 || space.threads > 0 || bytesOfElement(expr.op->getResult(0)) < kLaneBytes)
    return 0;
  if (streamsK(graph, root, *roles, space, target))
    return target.costs.cpu.rowsInParallel;
  if (roles->m < 0)
    return 0;
  const RootAccess &rhs = root.accesses[roles->rhsInput];
  int64_t m = mIn(space, root, expr, *roles), k = sizeIn(space, root, expr, expr.reductions[0]);
  int64_t lanes = lanesOfBlock(space, target), height = space.block.rows;
  int64_t rhsBytes = bytesOfElement(rhs.tensor);
  int64_t lhsBytes = bytesOfElement(root.accesses[roles->lhsInput].tensor);
  double room =
      target.costs.cpu.usableCache * target.level(tile::Space::block).capacityBytes - height * lanes * kLaneBytes;
  auto most = static_cast<int64_t>(room / (lanes * rhsBytes + height * lhsBytes));
  if (most < target.costs.cpu.shortestKBlock || k <= most)
    return 0;
  if (!liesInPanels(rhs, lanes))
    most = std::min(most, kCopiedBlockBytes / (lanes * kLaneBytes));
  int64_t blocks = llvm::divideCeil(k, most), passes = llvm::divideCeil(m, height);
  // Compares the bytes per column: without blocks of K, each block of rows reads rhs again; with blocks, each one loads
  // and stores the accumulators.
  if ((passes - 1) * k * rhsBytes <= 2 * blocks * m * kLaneBytes)
    return 0;
  return std::min<int64_t>(most, llvm::alignTo(llvm::divideCeil(k, blocks), kUnitOfK));
}

ChainMachine tilewright::chainMachine(const Target &target) {
  ChainMachine machine{{}, target.cores, target.flopsPerSecond / 2};
  for (auto [level, below] : llvm::zip(target.levels, llvm::drop_begin(target.levels))) {
    double cores = level.units == 1 ? target.cores : 1;
    machine.caches.push_back({level.name, level.capacityBytes / cores, below.bandwidth});
  }
  return machine;
}

std::vector<int64_t> tilewright::leastTiles(const OperatorChain &chain, const Target &target) {
  RegisterBlock block = registerBlock(target.vectorRegisters);
  std::vector<int64_t> least(chain.loops.size(), 1);
  for (const ChainOp &op : chain.ops) {
    const std::vector<ChainIndex> &dims = chain.tensors[op.tensors.back()].dims;
    auto atLeast = [&](size_t fromLast, int64_t size) {
      if (dims.size() >= fromLast && dims[dims.size() - fromLast].size() == 1)
        least[dims[dims.size() - fromLast][0].loop] = size;
    };
    atLeast(2, block.rows);
    atLeast(1, block.vectors * target.vectorBytes / kLaneBytes);
  }
  return least;
}

std::vector<NestLoop> tilewright::contractionLoops(const TensorGraph &graph, const GroupRoot &root,
                                                   const IterationSpace &space, const Target &target) {
  std::optional<ContractionRoles> roles = rolesOf(graph, root);
  if (!roles)
    return {};
  const TensorExpr &expr = graph.exprs()[root.expr];
  std::vector<NestLoop> loops;
  for (int64_t dim = 0; dim < static_cast<int64_t>(expr.domain.size()); ++dim)
    if (dim != roles->m && dim != roles->n && !llvm::is_contained(expr.reductions, dim))
      loops.push_back({dim, 1});
  loops.push_back({roles->n, lanesOfBlock(space, target)});
  if (int64_t k = kPerBlock(graph, root, space, target)) {
    bool isOutside = streamsK(graph, root, *roles, space, target);
    loops.insert(isOutside ? loops.end() - 1 : loops.end(), {expr.reductions[0], k, /*blocks=*/true});
  }
  if (roles->m >= 0)
    loops.push_back({roles->m, space.block.rows});
  for (int64_t dim : expr.reductions)
    loops.push_back({dim, 1});
  return loops;
}

namespace {
class GroupMovement {
public:
  GroupMovement(const TensorGraph &graph, const IterationSpace &space, const OperatorChain &chain, const Target &target)
      : graph(graph), space(space), chain(chain), target(target) {}

  std::vector<LevelMovement> levels() const {
    std::vector<LevelMovement> found;
    for (const CacheLevel &cache : chainMachine(target).caches) {
      double bytes = bytesInto(target.costs.cpu.usableCache * cache.capacityBytes);
      found.push_back({cache.name, bytes, 0, bytes / cache.bytesPerSecond * idle()});
    }
    return found;
  }

private:
  /// Returns the time of the core with the most tiles over the mean.
  double idle() const {
    double tiles = space.numTiles(), cores = std::min<double>(target.cores, space.workgroups);
    return std::ceil(tiles / cores) * target.cores / tiles;
  }

  double bytesInto(double capacity) const {
    Movement together = movementOf(chain, tilesOfGrid());
    if (together.memoryBytes <= capacity)
      return together.bytes;
    double bytes = 0;
    for (auto [op, alone] : llvm::zip(chain.ops, separately(chain)))
      bytes += bytesOfOperator(op, alone, capacity);
    return bytes;
  }

  int64_t placeOf(unsigned loop) const {
    const ChainLoop &from = chain.loops[loop];
    return space.root(from.expr).dims[from.dim];
  }

  /// Returns the loops of `among` that the grid walks, outermost first.
  std::vector<unsigned> gridLoops(ArrayRef<unsigned> among) const {
    std::vector<unsigned> loops;
    for (int64_t place : space.grid)
      for (unsigned loop : among)
        if (placeOf(loop) == place)
          loops.push_back(loop);
    return loops;
  }

  BlockOrder tilesOfGrid() const {
    std::vector<unsigned> all(chain.loops.size());
    std::iota(all.begin(), all.end(), 0);
    BlockOrder block{gridLoops(all), {}};
    for (unsigned loop : all) {
      if (!llvm::is_contained(block.order, loop))
        block.order.push_back(loop);
      block.tiles.push_back(space.tiles[placeOf(loop)]);
    }
    return block;
  }

  /// Returns the bytes that one operator moves. A loop that the grid tiles becomes two loops of the chain, one over
  /// tiles and one inside a tile.
  double bytesOfOperator(const ChainOp &op, OperatorChain alone, double capacity) const {
    const GroupRoot &root = space.root(op.expr);
    // Loops of `alone` have the numbers of their positions in op.loops.
    std::vector<unsigned> outer, inner;
    BlockOrder block;
    for (unsigned loop : gridLoops(op.loops))
      outer.push_back(cut(alone, llvm::find(op.loops, loop) - op.loops.begin(), space.tiles[placeOf(loop)]));
    for (const ChainLoop &loop : alone.loops)
      block.tiles.push_back(loop.extent);
    block.order = outer;
    std::vector<int64_t> steps;
    for (const NestLoop &loop : contractionLoops(graph, root, space, target))
      for (auto [number, own] : llvm::enumerate(op.loops))
        if (placeOf(own) == root.dims[loop.dim]) {
          unsigned walked = loop.blocks ? cut(alone, number, loop.step) : number;
          if (loop.blocks) {
            block.tiles[number] = alone.loops[number].extent;
            block.tiles.push_back(alone.loops[walked].extent);
          }
          block.order.push_back(walked);
          inner.push_back(walked);
          steps.push_back(loop.blocks ? 1 : loop.step);
        }
    for (unsigned loop : outer)
      block.tiles[loop] = 1;
    Movement movement = movementOf(alone, block);
    for (auto [loop, step] : llvm::zip(inner, steps)) {
      if (movement.memoryBytes <= capacity)
        break;
      block.tiles[loop] = std::min(step, alone.loops[loop].extent);
      movement = movementOf(alone, block);
    }
    return movement.bytes;
  }

  /// Splits a loop into a loop over tiles, which is returned, and the loop inside a tile, which keeps its number.
  static unsigned cut(OperatorChain &chain, unsigned loop, int64_t tile) {
    unsigned outer = chain.loops.size();
    int64_t tiles = llvm::divideCeil(chain.loops[loop].extent, tile);
    chain.loops.push_back({chain.loops[loop].name, tiles});
    chain.loops[loop].extent = tile;
    for (ChainTensor &tensor : chain.tensors)
      for (ChainIndex &index : tensor.dims)
        for (size_t term = 0, count = index.size(); term < count; ++term)
          if (index[term].loop == loop)
            index.push_back({outer, index[term].stride * tile});
    for (ChainOp &op : chain.ops)
      op.loops.push_back(outer);
    return outer;
  }

  const TensorGraph &graph;
  const IterationSpace &space;
  const OperatorChain &chain;
  const Target &target;
};

bool hasRoot(const IterationSpace &space, const ChainLoop &loop) {
  return llvm::any_of(space.roots, [&](const GroupRoot &root) { return root.expr == loop.expr; });
}
} // namespace

std::vector<OperatorChain> tilewright::chainsOf(const TensorGraph &graph, ArrayRef<unsigned> exprs,
                                                const IterationSpace &space) {
  std::vector<OperatorChain> chains;
  auto add = [&](ArrayRef<unsigned> among) {
    std::string reason;
    std::optional<OperatorChain> chain = chainAmong(graph, among, reason);
    if (!chain || !llvm::all_of(chain->loops, [&](const ChainLoop &loop) { return hasRoot(space, loop); }))
      return false;
    chains.push_back(std::move(*chain));
    return true;
  };
  if (!add(exprs))
    for (const GroupRoot &root : space.roots)
      if (graph.exprs()[root.expr].kind == ExprKind::contraction)
        add({root.expr});
  return chains;
}

std::vector<LevelMovement> tilewright::movementIn(const TensorGraph &graph, const IterationSpace &space,
                                                  ArrayRef<OperatorChain> chains, const Target &target) {
  std::vector<LevelMovement> all;
  for (const OperatorChain &chain : chains) {
    std::vector<LevelMovement> own = GroupMovement(graph, space, chain, target).levels();
    if (all.empty())
      all = std::move(own);
    else
      for (auto [level, more] : llvm::zip(all, own)) {
        level.bytes += more.bytes;
        level.seconds += more.seconds;
      }
  }
  return all;
}

std::vector<LevelMovement> tilewright::movementOfGroup(const TensorGraph &graph, const PlannedGroup &group,
                                                       const Target &target) {
  return movementIn(graph, group.space, chainsOf(graph, group.choice.exprs, group.space), target);
}

std::vector<std::vector<double>> tilewright::leastMovement(ArrayRef<OperatorChain> chains, const Target &target,
                                                           MLIRContext *context) {
  std::map<std::vector<double>, std::vector<double>> byForm;
  std::vector<std::pair<const OperatorChain *, std::vector<double> *>> searched;
  for (const OperatorChain &chain : chains)
    if (auto [entry, isNew] = byForm.try_emplace(chain.form()); isNew)
      searched.push_back({&chain, &entry->second});
  parallelForEach(context, searched, [&](const auto &one) {
    if (std::optional<BlockSchedule> best =
            scheduleChain(*one.first, chainMachine(target), leastTiles(*one.first, target)))
      for (const LevelChoice &level : best->levels)
        one.second->push_back(level.choice.movement.bytes);
  });
  std::vector<std::vector<double>> all;
  for (const OperatorChain &chain : chains)
    all.push_back(byForm.at(chain.form()));
  return all;
}
